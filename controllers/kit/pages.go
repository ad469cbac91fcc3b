// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects EachPage asks for at a time.
const pageSize = 500

// EachPage lists past the cache, and calls visit with each page. Errors are those of the list.
func EachPage[T any, L interface {
	*T
	client.ObjectList
}](ctx context.Context, from client.Reader, visit func(L), opts ...client.ListOption) error {
	var page L = new(T)
	for next, more := "", true; more; more = next != "" {
		err := from.List(ctx, page, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(next))...)
		if err != nil {
			return err
		}
		visit(page)
		next = page.GetContinue()
	}
	return nil
}
