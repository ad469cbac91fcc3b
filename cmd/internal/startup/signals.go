// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"fmt"
	"os"

	"github.com/bellwether-dev/bellwether/cmd/internal/interrupt"
)

// Signals begins to catch the signals that end a server, which may take as long as it needs. The second one ends it at
// once.
func Signals() *interrupt.Signals {
	return interrupt.Watch(interrupt.Options{Say: sayInterrupted, Exit: os.Exit})
}

// End ends a server that has stopped: with the word and the exit status of an interrupt if that was why. It returns
// after SIGTERM, which is how servers are stopped otherwise.
func End(s *interrupt.Signals) {
	if s.Interrupted() {
		sayInterrupted()
		os.Exit(interrupt.Status)
	}
}

func sayInterrupted() { fmt.Fprintln(os.Stderr, interrupt.Word) }
