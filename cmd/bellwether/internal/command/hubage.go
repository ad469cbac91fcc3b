// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/hub"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/term"
)

// maxHubAge is the age of the hub's last Lease renewal after which its data counts as old. A leader renews its Lease
// every few seconds; another replica takes over within a minute.
const maxHubAge = time.Minute

// hubAgeTimeout limits how long a command waits for the time at which the hub was last seen.
const hubAgeTimeout = 3 * time.Second

// WarnOfOldState makes a command that shows data of the hub print on stderr when the hub was last seen, if this was
// long ago. The command prints the warning when it connects to the hub.
func (a *Env) WarnOfOldState(c *cobra.Command) {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		var once sync.Once // several goroutines of a command may connect
		a.connected = func(h *hub.Client) {
			once.Do(func() {
				if text := a.DescribeHubAge(c.Context(), h); text != "" {
					a.Warn("%s\n", text)
				}
			})
		}
		defer func() { a.connected = nil }()
		return run(c, args)
	}
}

// DescribeHubAge returns when the hub was last seen, if this was long ago. It returns an empty string if the
// hub was seen recently, or if the time cannot be read: because a permission is missing, or because
// the Lease is on another cluster.
func (a *Env) DescribeHubAge(ctx context.Context, h *hub.Client) string {
	ctx, cancel := context.WithTimeout(ctx, hubAgeTimeout)
	defer cancel()
	lastSeen, err := h.LastSeen(ctx)
	if err != nil || lastSeen.IsZero() {
		return ""
	}
	age := a.Now().Sub(lastSeen)
	if age <= maxHubAge {
		return ""
	}
	return "The hub was last seen at " + term.Instant(lastSeen) + ", " + term.Span(age) +
		" ago: what is below may be older than it looks."
}
