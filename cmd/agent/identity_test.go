// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// TestNamespaceIsThatOfTheToken verifies that the namespace comes from the token. A hub that
// could choose the namespace of the owner's policy could avoid the policy.
func TestNamespaceIsThatOfTheToken(t *testing.T) {
	token := func(subject string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+subject+`"}`)) + ".c2ln"
	}
	file := filepath.Join(t.TempDir(), "token")
	mounted := token("system:serviceaccount:mounted:bellwether-agent") + "\n"
	if err := os.WriteFile(file, []byte(mounted), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config rest.Config
		want   string
	}{
		"a mounted token": {rest.Config{BearerTokenFile: file}, "mounted"},
		"a token":         {rest.Config{BearerToken: token("system:serviceaccount:team:bellwether-agent")}, "team"},
		"a mounted token, which client-go prefers": {rest.Config{BearerTokenFile: file,
			BearerToken: token("system:serviceaccount:team:bellwether-agent")}, "mounted"},
		"a person's token": {rest.Config{BearerToken: token("olga")}, "other"},
		"another token":    {rest.Config{BearerToken: "abc"}, "other"},
		"a certificate":    {rest.Config{}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := readOwnNamespace(&test.config, "other"); got != test.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
	if got, err := readOwnNamespace(&rest.Config{BearerTokenFile: file + "x"}, "other"); err == nil {
		t.Errorf("without the token's file it is %q", got)
	}
}
