// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example.com/team/app:v1": "registry.example.com/team/app",
		"registry.example.com:5000/app":    "registry.example.com:5000/app",
		"team/app":                         "docker.io/team/app",
		"app":                              "docker.io/library/app",
	} {
		if got, err := catalogs.Repository(image); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", image, got, err, want)
		}
	}
	for _, image := range []string{"", "quay.io/UPPER", "https://quay.io/a", "quay.io/../a"} {
		if got, err := catalogs.Repository(image); !errors.Is(err, catalogs.ErrNoImage) {
			t.Errorf("%q: %q, %v, want an error", image, got, err)
		}
	}
}

func TestIsIn(t *testing.T) {
	for _, test := range []struct {
		repository, registry string
		want                 bool
	}{
		{"quay.io/team/app", "quay.io", true},
		{"quay.io/team/app", "quay.io/team", true},
		{"quay.io/team/app", "quay.io/team/", true},
		{"quay.io/team/app", "quay.io/team/app", true},
		{"quay.io/teams/app", "quay.io/team", false},
		{"quay.io.evil.example.com/app", "quay.io", false},
		{"quay.io:5000/app", "quay.io", false},
		{"quay.io/app", "", false},
	} {
		if got := catalogs.IsInRegistry(test.repository, test.registry); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

func TestTrusted(t *testing.T) {
	key := func() string {
		pair, err := sign.GenerateKey(sign.ECDSA, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Public)
	}
	a, b := key(), key()
	for name, test := range map[string]struct{ keys, want []string }{
		"none":                       {nil, nil},
		"one of them":                {[]string{b, a}, []string{a}},
		"written otherwise":          {[]string{"\n" + a + "\n"}, []string{"\n" + a + "\n"}},
		"another one hides behind":   {[]string{a + b}, nil},
		"something that is no key":   {[]string{"-----BEGIN PUBLIC KEY-----"}, nil},
		"a block that holds no key ": {[]string{"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}, nil},
	} {
		if got := catalogs.TrustedKeys(test.keys, []string{a}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
