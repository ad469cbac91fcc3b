// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ladder_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs/ladder"
)

// commented is a file with typical comments.
const commented = `# The echo operator. Owners: team-echo.
apiVersion: bellwether.dev/v1alpha1
kind: CatalogLadder
package: echo # as in OperatorHub

# Lowest first.
channels: [candidate, fast, stable]

bundles:
# The first one.
- version: 1.0.0
  image: registry.example.com/echo` + digest + ` # built by hand
  channel: stable
# The second one.
- version: 1.1.0
  path: bundles/1.1.0
  channel: candidate
- version: 1.2.0
  path: bundles/1.2.0
  channel: candidate

# Nothing is blocked, which is how we like it.
blocks: []

# The end.
`

var today = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

func TestEditsKeepComments(t *testing.T) {
	f := parse(t, commented)
	l := f.Ladder
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	same, err := f.Format()
	must(err)
	if diff := cmp.Diff(commented, string(same)); diff != "" {
		t.Errorf("a file that nobody edited changed:\n%s", diff)
	}
	must(l.Add(ladder.Bundle{Version: "1.3.0", Path: "bundles/1.3.0"}))
	_, err = l.Promote("1.2.0", "stable")
	must(err)
	must(l.Block(ladder.Block{Version: "1.1.0", Reason: "loses data: see #12", Expires: "2026-12-31", Instead: "1.2.0"},
		today))
	must(l.Retire("1.0.0", ""))
	must(l.Deprecate(ladder.Deprecation{Channel: "fast", Message: "use stable"}))
	got, err := f.Format()
	must(err)
	want := `# The echo operator. Owners: team-echo.
apiVersion: bellwether.dev/v1alpha1
kind: CatalogLadder
package: echo # as in OperatorHub

# Lowest first.
channels: [candidate, fast, stable]

bundles:
# The second one.
- version: 1.1.0
  path: bundles/1.1.0
  channel: candidate
- version: 1.2.0
  path: bundles/1.2.0
  channel: stable
- version: 1.3.0
  path: bundles/1.3.0
  channel: candidate

# Nothing is blocked, which is how we like it.
blocks:
- version: 1.1.0
  reason: 'loses data: see #12'
  expires: "2026-12-31"
  instead: 1.2.0

deprecations:
- channel: fast
  message: use stable

retired:
- version: 1.0.0
  image: registry.example.com/echo` + digest + `
  channel: stable

# The end.
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	again, err := parse(t, string(got)).Format()
	must(err)
	if diff := cmp.Diff(string(got), string(again)); diff != "" {
		t.Errorf("formatting twice is not formatting once:\n%s", diff)
	}
	must(l.Unblock("1.1.0"))
	empty, err := f.Format()
	must(err)
	if !strings.Contains(string(empty), "how we like it.\nblocks: []\n") {
		t.Errorf("the comment on the list did not survive:\n%s", empty)
	}
}

func TestNewFieldsKeepOrder(t *testing.T) {
	f := parse(t, commented)
	f.Ladder.Description, f.Ladder.DefaultChannel, f.Ladder.Policy.Upgrades = "Echoes.", "fast", ladder.Direct
	got, err := f.Format()
	if err != nil {
		t.Fatal(err)
	}
	want := `package: echo # as in OperatorHub
description: Echoes.

# Lowest first.
channels: [candidate, fast, stable]
defaultChannel: fast

policy:
  upgrades: Direct

bundles:
`
	if !strings.Contains(string(got), want) {
		t.Errorf("got\n%s", got)
	}
}

func TestEditsRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(l *ladder.Ladder) error
		is   error
		want string
	}{
		"add another bundle as the same version": {
			func(l *ladder.Ladder) error {
				return l.Add(ladder.Bundle{Version: "1.0.0", Image: "registry.example.com/echo@sha256:" +
					strings.Repeat("2", 64)})
			}, ladder.ErrExists, "a version never changes"},
		"add without a digest": {
			func(l *ladder.Ladder) error {
				return l.Add(ladder.Bundle{Version: "2.0.0", Image: "registry.example.com/echo:2.0.0"})
			}, ladder.ErrInvalid, "has no digest"},
		"add a pre-release": {
			func(l *ladder.Ladder) error { return l.Add(ladder.Bundle{Version: "2.0.0-rc.1", Path: "x"}) },
			ladder.ErrInvalid, "plain X.Y.Z"},
		"add to nowhere": {
			func(l *ladder.Ladder) error {
				return l.Add(ladder.Bundle{Version: "2.0.0", Path: "x", Channel: "beta"})
			}, ladder.ErrNoChannel, "candidate, fast, stable"},
		"promote what is not there": {
			func(l *ladder.Ladder) error { _, err := l.Promote("1.0.1", ""); return err }, ladder.ErrNoVersion,
			"it has 1.2.0, 1.1.0, 1.0.0"},
		"promote above the top": {
			func(l *ladder.Ladder) error { _, err := l.Promote("1.0.0", ""); return err }, ladder.ErrRefused,
			"the highest channel"},
		"promote downwards": {
			func(l *ladder.Ladder) error { _, err := l.Promote("1.0.0", "fast"); return err }, ladder.ErrRefused,
			"is in stable already"},
		"promote to nowhere": {
			func(l *ladder.Ladder) error { _, err := l.Promote("1.1.0", "stabel"); return err }, ladder.ErrNoChannel,
			"did you mean stable?"},
		"promote a blocked one": {
			func(l *ladder.Ladder) error {
				if err := l.Block(ladder.Block{Version: "1.1.0", Reason: "loses data"}, today); err != nil {
					return err
				}
				_, err := l.Promote("1.1.0", "")
				return err
			}, ladder.ErrRefused, "is blocked: loses data"},
		"demote upwards": {
			func(l *ladder.Ladder) error { return l.Demote("1.1.0", "fast") }, ladder.ErrRefused, "fast is not below"},
		"block without a reason": {
			func(l *ladder.Ladder) error { return l.Block(ladder.Block{Version: "1.1.0", Reason: " "}, today) },
			ladder.ErrInvalid, "no reason"},
		"block until yesterday": {
			func(l *ladder.Ladder) error {
				return l.Block(ladder.Block{Version: "1.1.0", Reason: "x", Expires: "2026-11-21"}, today)
			}, ladder.ErrRefused, "not in the future"},
		"unblock a good one": {
			func(l *ladder.Ladder) error { return l.Unblock("1.1.0") }, ladder.ErrRefused, "is not blocked"},
		"unblock what is not there": {
			func(l *ladder.Ladder) error { return l.Unblock("9.9.9") }, ladder.ErrNoVersion, "9.9.9"},
		"retire the newest": {
			func(l *ladder.Ladder) error { return l.Retire("1.2.0", "") }, ladder.ErrRefused, "no upgrade path"},
		"retire a channel's newest": {
			func(l *ladder.Ladder) error { return l.Retire("1.0.0", "") }, ladder.ErrRefused,
			"no higher good version is in channel stable"},
		"retire what is used instead": {
			func(l *ladder.Ladder) error {
				if err := l.Block(ladder.Block{Version: "1.2.0", Reason: "x", Instead: "1.1.0"}, today); err != nil {
					return err
				}
				if err := l.Add(ladder.Bundle{Version: "1.3.0", Path: "x"}); err != nil {
					return err
				}
				return l.Retire("1.1.0", "")
			}, ladder.ErrRefused, "sends clusters to 1.1.0"},
		"add a retired one": {
			func(l *ladder.Ladder) error {
				if err := l.Retire("1.1.0", ""); err != nil {
					return err
				}
				return l.Add(ladder.Bundle{Version: "1.1.0", Path: "x"})
			}, ladder.ErrExists, "a version never comes back"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.edit(parse(t, commented).Ladder)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v: %s", err, c.is, c.want)
			}
		})
	}
}

func TestAddIsIdempotent(t *testing.T) {
	f := parse(t, small)
	mirrored := ladder.Bundle{Version: "1.0.0", Name: "echo.v1.0.0", Image: "mirror.example.com/echo" + digest}
	if err := f.Ladder.Add(mirrored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, small).Ladder, f.Ladder); diff != "" {
		t.Error(diff)
	}
}

func TestNew(t *testing.T) {
	f, err := ladder.New("echo.yaml", parse(t, small).Ladder)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Format()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(small, "bundles:", "\nbundles:", 1); string(got) != want {
		t.Errorf("got\n%s", got)
	}
}
