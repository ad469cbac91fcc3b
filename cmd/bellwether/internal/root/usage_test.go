// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// TestWrongUsageIsNoAnswer: if exit status 1 is a result, such as that a version of Kubernetes breaks an operator, a
// mistake in the command line must have another exit status.
func TestWrongUsageIsNoAnswer(t *testing.T) {
	h := clitest.NewHub()
	for _, command := range []string{"bundle lint", "bundle diff a b", "bundle scorecard a", "catalog compile a b",
		"catalog diff a b", "catalog verify a", "catalog vulnerabilities a --osv b",
		"fleet compatibility --kubernetes 1.37"} {
		for _, wrong := range []string{"--rubbish", "-o rubbish", "one too many arguments"} {
			args := strings.Fields(command + " " + wrong)
			r := h.Run(t, args...)
			if r.Code != 2 || !strings.HasPrefix(r.Err, "Error: ") || !strings.Contains(r.Err, "\nHint:  ") {
				t.Errorf("%q: exit %d\n%s", args, r.Code, r.Err)
			}
			if n := strings.Count(r.Err, "Error: "); n != 1 {
				t.Errorf("%q has %d errors:\n%s", args, n, r.Err)
			}
		}
	}
	if r := h.Run(t, "catalog", "verify", "a", "--deep", "--no-bundle-check"); r.Code != 2 {
		t.Errorf("flags that exclude each other: exit %d\n%s", r.Code, r.Err)
	}
}

const (
	noImage = "folder none does not exist\nHint:  write images with their registry, for example " +
		"registry.example.com/bundles/echo-operator:1.1.0\n"
	noRegistry = " names no registry\nHint:  write it with its registry, for example " +
		"registry.example.com/bundles/echo-operator:1.1.0\n"
)

// TestMistakesAreNamed requires that a message says what is wrong, in the terms of the user, and what to do.
func TestMistakesAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := clitest.NewHub()
	bundle := filepath.Join(dir, "bundle")
	h.MustRun(t, "bundle", "init", bundle)
	ladder := filepath.Join(dir, "ladders")
	h.MustRun(t, "catalog", "init", ladder, "--package", "echo")
	catalog := filepath.Join(dir, "catalog")
	if err := os.MkdirAll(catalog, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(catalog, "c.json"), []byte(oneVersion), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args string
		want string
	}{
		"a flag that is missing": {"operator confirm-removal echo",
			"missing flag --clusters\nHint:  usage: bellwether operator confirm-removal NAME --clusters N [flags]\n"},
		"flags that are missing": {"slo edge-config", "missing flag --cluster, --remote-write-url\nHint:  usage: " +
			"bellwether slo edge-config --cluster NAME --remote-write-url URL [flags]\n"},
		"flags that exclude each other": {"silence create x --for 1h --until 2027-01-01T00:00:00Z",
			"--for and --until exclude each other\nHint:  set only one of them\n"},
		"none of some flags": {"catalog deprecate . --message x",
			"none of --version, --channel, --package is set\nHint:  set one of them\n"},
		"a number": {"operator confirm-removal echo --clusters many",
			"invalid value \"many\" of --clusters\nHint:  use a whole number\n"},
		"a duration": {"support-bundle --since yesterday",
			"invalid value \"yesterday\" of --since\nHint:  use a duration such as 30s, 5m or 2h\n"},
		"a pair": {"fleet join prod-1 --labels prod",
			"invalid value \"prod\" of --labels\nHint:  use KEY=VALUE\n"},
		"the only format":      {"rollout plan echo -o json", "invalid value \"json\" of -o\nHint:  use wide\n"},
		"no folder to compare": {"bundle diff " + bundle + " none", noImage},
		"no folder to judge":   {"bundle scorecard none", noImage},
		"no registry for a bundle": {"bundle push " + bundle + " echo:1.0.0",
			"the reference \"echo:1.0.0\"" + noRegistry},
		"no registry for a built bundle": {"bundle build " + bundle + " --push echo",
			"the reference \"echo\"" + noRegistry},
		"no registry for a catalog": {"catalog publish " + dir + " main:latest",
			"the reference \"main:latest\"" + noRegistry},
		"no catalog to push": {"catalog push none registry.example.com/main:latest",
			"folder none does not exist\nHint:  check the path\n"},
		"no catalog to publish": {"catalog publish none registry.example.com/main:latest",
			"folder none does not exist\nHint:  check the path\n"},
		"a file to push": {"bundle push " + file + " registry.example.com/b:1",
			"is a file, not a folder\nHint:  give the folder that it is in\n"},
		"a file for init": {"bundle init " + file, "is a file\nHint:  choose another folder\n"},
		"no such bundle": {"bundle lint registry.example.com/A/b:1",
			"could not parse reference: registry.example.com/A/b:1\n" +
				"Hint:  write images as REGISTRY/NAME:TAG or " +
				"REGISTRY/NAME@sha256:DIGEST\n"},
		"no folder to name": {"support-bundle --file " + dir, "is a folder\nHint:  name a file in it\n"},
		"an address": {"registry serve --addr here",
			"invalid value \"here\" of --addr\nHint:  use the form 127.0.0.1:5000\n"},
		"a root that is no folder": {"registry serve --root " + file + " --addr 127.0.0.1:0",
			"not a directory\nHint:  use another folder\n"},
		"an install mode": {"bundle try none --install-mode Some",
			"invalid value \"Some\" of --install-mode\nHint:  use OwnNamespace, SingleNamespace, " +
				"AllNamespaces, MultiNamespace\n"},
		"an address for a trial": {"bundle try none --listen a:b:c",
			"invalid value \"a:b:c\" of --listen\nHint:  use the form HOST or HOST:PORT\n"},
		"a timeout that is over": {"bundle try none --timeout -1s",
			"invalid value \"-1s\" of --timeout\nHint:  use a duration such as 30s, 5m or 2h\n"},
		"a timeout of requests": {"bundle try " + bundle + " --request-timeout soon",
			"invalid value \"soon\" of --request-timeout\nHint:  use a duration such as 30s\n"},
		"a timeout of a wait that is over": {"rollout status echo --wait --timeout -3s",
			"invalid value \"-3s\" of --timeout\nHint:  use a duration such as 30s, 5m or 2h\n"},
		"a number of runs": {"slo simulate --runs -1",
			"invalid value -1 of --runs\nHint:  use a whole number from 1\n"},
		"neither a name nor all": {"operator resume", "set either the name of the operator or --all\nHint:  usage: " +
			"bellwether operator resume NAME | --all [flags]\n"},
		"an SBOM for no image": {"catalog vulnerabilities " + catalog + " --osv " + dir + " --sbom x@@y=" + file,
			"invalid value \"x@@y=" + file + "\" of --sbom\nHint:  use IMAGE=FILE, with the image as the catalog " +
				"names it\n"},
		"no version to block": {"catalog block " + ladder + " 1.0.0 --reason x",
			"block: no such version 1.0.0 of package \"echo\": it has none yet\n"},
		"two mistakes at once": {"bundle build " + bundle + " -o rubbish",
			"invalid value \"rubbish\" of -o\nHint:  use one of json, yaml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.Run(t, strings.Fields(test.args)...)
			if r.Code == exit.OK || !strings.HasPrefix(r.Err, "Error: ") || !strings.HasSuffix(r.Err, test.want) ||
				strings.Count(r.Err, "\n") != strings.Count(test.want, "\n") {
				t.Errorf("exit %d\n%s\nwant\n%s", r.Code, r.Err, test.want)
			}
		})
	}
}

// oneVersion is a catalog.
const oneVersion = `{"schema":"olm.package","name":"p","defaultChannel":"stable"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"example.com/p:1","properties":[` +
	`{"type":"olm.package","value":{"packageName":"p","version":"1.0.0"}}]}
`

// TestHelpHasNoGoTypes: the help names the values of flags in the terms of a user, and does not show empty defaults.
func TestHelpHasNoGoTypes(t *testing.T) {
	for _, c := range commands(t) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch kind, _ := pflag.UnquoteUsage(f); kind {
			case "stringArray", "stringToString", "int32", "uint", "ints":
				t.Errorf("%s: --%s takes a %q", c.CommandPath(), f.Name, kind)
			}
		})
		if usages := c.LocalFlags().FlagUsages(); strings.Contains(usages, "(default )") ||
			strings.Contains(usages, "(default [])") {
			t.Errorf("%s: an empty default is shown:\n%s", c.CommandPath(), usages)
		}
	}
}

// TestUnreachableClusterIsToldOnce: a trial reports the cluster once, before any other output.
func TestUnreachableClusterIsToldOnce(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "bundle")
	h := clitest.NewHub()
	h.MustRun(t, "bundle", "init", bundle)
	r := h.Run(t, "bundle", "try", bundle, "--server", "https://127.0.0.1:1")
	const want = "Error: cannot reach the cluster at https://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection " +
		"refused\nHint:  check --kubeconfig and --context, and that the cluster is running\n"
	if r.Code != exit.Error || r.Out != "" || r.Err != want {
		t.Errorf("exit %d\n%s%s", r.Code, r.Out, r.Err)
	}
}
