// Package conversation is how the testbed's programs are asked: every line of standard input is a question, every line of
// standard output its answer.
package conversation

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

// Hold answers questions until there are no more.
func Hold[Question, Answer any](answer func(Question) Answer) {
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for questions.More() {
		var asked Question
		if err := questions.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(answer(asked)); err != nil {
			log.Fatal(err)
		}
	}
}
