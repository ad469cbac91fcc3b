// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poll waits until something is as it has to be.
package poll

import (
	"context"
	"fmt"
	"time"
)

// Until checks again and again until the check passes. When the context ends before, the error has what the last check
// said.
func Until(ctx context.Context, every time.Duration, check func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
