// Package conversation implements the protocol of the testbed's programs: every line of standard input is a request, and every
// line of standard output is its response.
package conversation

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

// Serve responds to requests until the input ends.
func Serve[Request, Response any](respond func(Request) Response) {
	requests := json.NewDecoder(bufio.NewReader(os.Stdin))
	responses := json.NewEncoder(os.Stdout)
	for requests.More() {
		var request Request
		if err := requests.Decode(&request); err != nil {
			log.Fatal(err)
		}
		if err := responses.Encode(respond(request)); err != nil {
			log.Fatal(err)
		}
	}
}
