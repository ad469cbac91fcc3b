// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package startup

import (
	"fmt"
	"os"

	"github.com/bellwether-dev/bellwether/cmd/internal/interrupt"
)

// WatchSignals starts to catch the signals that end a server. After the first signal, a server may
// take any time to end. The second signal ends it at once.
func WatchSignals() *interrupt.Signals {
	return interrupt.Watch(interrupt.Options{PrintWord: printInterrupted, Exit: os.Exit})
}

// ExitIfInterrupted ends a server that has stopped. After an interrupt, it prints the word and exits with the
// status of an interrupt. After SIGTERM, the usual way to stop a server, it returns.
func ExitIfInterrupted(s *interrupt.Signals) {
	if s.Interrupted() {
		printInterrupted()
		os.Exit(interrupt.Status)
	}
}

// printInterrupted prints the last line of an interrupted program.
func printInterrupted() { fmt.Fprintln(os.Stderr, interrupt.Word) }
