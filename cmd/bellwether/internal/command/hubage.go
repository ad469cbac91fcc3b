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

// oldAfter is how long after the hub's last sign of life what it wrote counts as old. A leader renews its Lease every
// few seconds; a minute is enough for another replica to take over.
const oldAfter = time.Minute

// hubAgeTimeout bounds how long a command waits to learn when the hub was last seen.
const hubAgeTimeout = 3 * time.Second

// Reads makes a command that shows what the hub knows say on stderr when the hub was last seen, if that is long ago. It
// does so when the command connects to the hub.
func (a *Env) Reads(c *cobra.Command) {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		var once sync.Once // a command may read in several goroutines, each of which connects
		a.connected = func(h *hub.Client) {
			once.Do(func() {
				if text := a.HubAway(c.Context(), h); text != "" {
					a.Warn("%s\n", text)
				}
			})
		}
		defer func() { a.connected = nil }()
		return run(c, args)
	}
}

// HubAway says when the hub was last seen, if that is long ago. It is empty if the hub was seen lately, or if that
// cannot be read: because of missing rights, or because the hubs agree through a Lease on another cluster.
func (a *Env) HubAway(ctx context.Context, h *hub.Client) string {
	ctx, cancel := context.WithTimeout(ctx, hubAgeTimeout)
	defer cancel()
	seen, err := h.LastSeen(ctx)
	if err != nil || seen.IsZero() {
		return ""
	}
	age := a.Now().Sub(seen)
	if age <= oldAfter {
		return ""
	}
	return "The hub was last seen at " + term.Instant(seen) + ", " + term.Span(age) +
		" ago: what is below may be older than it looks."
}
