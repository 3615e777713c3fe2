// Command agent-rules evaluates condition rules and feedback rules on an object with the code of OCM's work agent.
//
// Every line of standard input is a request, and every line of standard output is its response.
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

type request struct {
	Object        json.RawMessage        `json:"object"`
	Rules         []workv1.ConditionRule `json:"rules"`
	FeedbackRules []workv1.FeedbackRule  `json:"feedbackRules"`
}

type response struct {
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
	requests := json.NewDecoder(bufio.NewReader(os.Stdin))
	responses := json.NewEncoder(os.Stdout)
	for requests.More() {
		var request request
		if err := requests.Decode(&request); err != nil {
			log.Fatal(err)
		}
		// Decodes whole numbers as integers, like a client of the API server.
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(request.Object); err != nil {
			log.Fatal(err)
		}
		if err := responses.Encode(evaluate(rules, object, request)); err != nil {
			log.Fatal(err)
		}
	}
}

func evaluate(rules *conditions.ConditionReader, object *unstructured.Unstructured, request request) response {
	result := response{
		Conditions:     rules.EvaluateConditions(context.Background(), object, request.Rules),
		Values:         []workv1.FeedbackValue{},
		FeedbackErrors: []string{},
	}
	if result.Conditions == nil {
		result.Conditions = []metav1.Condition{}
	}
	feedback := statusfeedback.NewStatusReader()
	for _, rule := range request.FeedbackRules {
		values, err := feedback.GetValuesByRule(object, rule)
		if err != nil {
			result.FeedbackErrors = append(result.FeedbackErrors, err.Error())
		}
		result.Values = append(result.Values, values...)
	}
	return result
}
