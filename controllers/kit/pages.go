// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects EachPage requests at a time.
const pageSize = 500

// EachPage lists objects from a reader, which must not be a cache, and calls visit with each
// page. It returns the error of the list.
func EachPage[T any, L interface {
	*T
	client.ObjectList
}](ctx context.Context, reader client.Reader, visit func(L), opts ...client.ListOption) error {
	var page L = new(T)
	for token, hasMore := "", true; hasMore; hasMore = token != "" {
		err := reader.List(ctx, page, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(token))...)
		if err != nil {
			return err
		}
		visit(page)
		token = page.GetContinue()
	}
	return nil
}
