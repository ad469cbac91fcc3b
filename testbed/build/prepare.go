// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"io"
)

// Prepare builds components and programs that a command of the testbed will use, and the command, and returns the path
// of the latter. All of it stays in the user's cache. It reports how much of the whole is left.
func Prepare(ctx context.Context, out io.Writer, components, used []string, command string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	groups, err := groupsOf(components)
	if err != nil {
		return "", err
	}
	expected, err := missing(root, groups)
	if err != nil {
		return "", err
	}
	names := append([]string{command}, used...)
	targets, err := targetsOf(root, names)
	if err != nil {
		return "", err
	}
	dir, err := cacheFolder("commands")
	if err != nil {
		return "", err
	}
	p := newProgress(out)
	defer p.expect(ctx, append(expected, targets...))()
	if _, err := ensure(ctx, p, root, groups, components); err != nil {
		return "", err
	}
	paths, err := local(ctx, p, root, dir, targets, names)
	return paths[command], err
}
