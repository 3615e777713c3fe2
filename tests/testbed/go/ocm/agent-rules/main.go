// Command agent-rules answers what OCM's work agent makes of condition rules and feedback rules on an object.
//
// Every line of standard input is a question, every line of standard output its answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"open-cluster-management.io/api/feature"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/ocm/pkg/features"
	"open-cluster-management.io/ocm/pkg/work/spoke/conditions"
	"open-cluster-management.io/ocm/pkg/work/spoke/statusfeedback"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	Object        json.RawMessage        `json:"object"`
	Rules         []workv1.ConditionRule `json:"rules"`
	FeedbackRules []workv1.FeedbackRule  `json:"feedbackRules"`
}

type answer struct {
	Conditions     []metav1.Condition     `json:"conditions"`
	Values         []workv1.FeedbackValue `json:"values"`
	FeedbackErrors []string               `json:"feedbackErrors"`
}

func main() {
	if err := features.SpokeMutableFeatureGate.Add(feature.DefaultSpokeWorkFeatureGates); err != nil {
		log.Fatal(err)
	}
	rules, err := conditions.NewConditionReader()
	if err != nil {
		log.Fatal(err)
	}
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for questions.More() {
		var asked question
		if err := questions.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		// As a client of the API server decodes it: whole numbers are integers.
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(asked.Object); err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(judge(rules, object, asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func judge(rules *conditions.ConditionReader, object *unstructured.Unstructured, asked question) answer {
	told := answer{
		Conditions:     rules.EvaluateConditions(context.Background(), object, asked.Rules),
		Values:         []workv1.FeedbackValue{},
		FeedbackErrors: []string{},
	}
	if told.Conditions == nil {
		told.Conditions = []metav1.Condition{}
	}
	feedback := statusfeedback.NewStatusReader()
	for _, rule := range asked.FeedbackRules {
		values, err := feedback.GetValuesByRule(object, rule)
		if err != nil {
			told.FeedbackErrors = append(told.FeedbackErrors, err.Error())
		}
		told.Values = append(told.Values, values...)
	}
	return told
}
