// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"slices"
)

// Names of the upstream components that Ensure builds.
const (
	Etcd                  = "etcd"
	KubeAPIServer         = "kube-apiserver"
	KubeControllerManager = "kube-controller-manager"
	OLM                   = "olm"
	OLMCatalog            = "catalog"
	OLMCRDs               = "olm-crds" // a folder of YAML files, not a binary
	ClusterAPICRDs        = "cluster-api-crds"
	ClusterInventoryCRDs  = "cluster-inventory-crds"
	OPM                   = "opm"
	Prometheus            = "prometheus"
	Promtool              = "promtool"
	RuleTester            = "test-rules"
	Alertmanager          = "alertmanager"
	Amtool                = "amtool"
	BlockWriter           = "write-blocks"
)

// Everyday returns the components that the demo and most tests run. The others are built when something asks for them.
func Everyday() []string { return append(OfDemo(), Promtool, Amtool) }

// OfDemo returns the components that the demo runs.
func OfDemo() []string {
	return []string{Etcd, KubeAPIServer, KubeControllerManager, OLM, OLMCatalog, OLMCRDs, Prometheus, Alertmanager}
}

const olmModule = "github.com/operator-framework/operator-lifecycle-manager"

// group is a set of artifacts that share one module under testbed/components.
type group struct {
	name      string
	tags      string
	ldflags   string
	env       []string
	artifacts []artifact
}

// module is that of the group, in its folder.
func (g group) module(source string) goModule { return goModule{dir: source, env: g.env} }

// flags are those of the go command for all programs of the group.
func (g group) flags() []string { return []string{"-tags", g.tags, "-ldflags", g.ldflags} }

// packages are the main packages of the group's programs.
func (g group) packages() []string {
	var packages []string
	for _, a := range g.artifacts {
		if a.pkg != "" {
			packages = append(packages, a.pkg)
		}
	}
	return packages
}

// artifact is one product of a group: a command, or a folder copied from a required module.
type artifact struct {
	name     string
	pkg      string // main package to build
	module   string // module to copy files from; pkg is empty then
	folder   string // folder of that module
	estimate string // cold build on two cores, for people who wait
}

// groups is the whole table of what the testbed builds from upstream. Modules that several of them require have one
// version, which is also the testbed's and the product's: so most of what they are compiled from is compiled once.
var groups = []group{
	{
		name:      "etcd",
		ldflags:   ldflagsStrip,
		artifacts: []artifact{{name: Etcd, pkg: "go.etcd.io/etcd/server/v3", estimate: "1 min"}},
	},
	{
		name: "kubernetes",
		// Without a version the server calls itself v0.0.0 and clients that ask for a minimum version refuse it.
		ldflags: ldflagsStrip +
			" -X k8s.io/component-base/version.gitVersion=v1.37.0 -X k8s.io/component-base/version.gitMajor=1 -X " +
			"k8s.io/component-base/version.gitMinor=37",
		artifacts: []artifact{
			{name: KubeAPIServer, pkg: "k8s.io/kubernetes/cmd/kube-apiserver", estimate: "4 min"},
			{name: KubeControllerManager, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager", estimate: "1 min"},
		},
	},
	{
		name:    "olm",
		ldflags: ldflagsStrip,
		artifacts: []artifact{
			{name: OLM, pkg: "./cmd/olm", estimate: "2 min"},
			{name: OLMCatalog, pkg: "./cmd/catalog", estimate: "1 min"},
			{name: OLMCRDs, module: olmModule, folder: "deploy/chart/crds"},
		},
	},
	{
		name: "sources",
		artifacts: []artifact{
			{name: ClusterAPICRDs, module: "sigs.k8s.io/cluster-api", folder: "config/crd/bases"},
			{name: ClusterInventoryCRDs, module: "sigs.k8s.io/cluster-inventory-api", folder: "config/crd/bases"},
		},
	},
	{
		name:    "opm",
		tags:    "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,json1",
		ldflags: ldflagsStrip,
		env:     []string{"CGO_ENABLED=0"}, // with cgo it compiles SQLite's C code
		artifacts: []artifact{{name: OPM, pkg: "github.com/operator-framework/operator-registry/cmd/opm",
			estimate: "1 min"}},
	},
	{
		name: "prometheus",
		// Of the discoveries only those that the testbed uses: each of the others brings a cloud's libraries. The user
		// interface's files are no part of the module; the API is complete.
		tags:    "remove_all_sd,enable_kubernetes_sd,enable_http_sd,enable_file_sd",
		ldflags: ldflagsStrip + " -X github.com/prometheus/common/version.Version=3.15.0",
		artifacts: []artifact{
			{name: Prometheus, pkg: "github.com/prometheus/prometheus/cmd/prometheus", estimate: "3 min"},
			{name: Promtool, pkg: "github.com/prometheus/prometheus/cmd/promtool", estimate: "1 min"},
			{name: RuleTester, pkg: ".", estimate: "1 min"},
		},
	},
	{
		name:    "alertmanager",
		ldflags: ldflagsStrip + " -X github.com/prometheus/common/version.Version=0.34.2",
		artifacts: []artifact{
			{name: Alertmanager, pkg: "github.com/prometheus/alertmanager/cmd/alertmanager", estimate: "1 min"},
			{name: Amtool, pkg: "github.com/prometheus/alertmanager/cmd/amtool", estimate: "1 min"},
		},
	},
	{
		name:      "blocks",
		ldflags:   ldflagsStrip,
		artifacts: []artifact{{name: BlockWriter, pkg: ".", estimate: "1 min"}},
	},
}

// ClientQPS is the environment variable that says how many requests a second each of OLM's clients may send. Without
// it they keep to client-go's default, as upstream's do: 5, in bursts of 10.
const ClientQPS = "TESTBED_CLIENT_QPS"

// changes are of the groups whose programs are compiled with a changed module, by the group's name.
var changes = map[string]change{
	// The user interface's files. The API is complete without them.
	"alertmanager": {module: "github.com/prometheus/alertmanager", files: map[string]string{
		"ui/app/dist/index.html": "This build has no user interface.\n",
	}},
	// The catalog operator makes its own clients, so their limits cannot be set from its main.
	"olm": {
		module: olmModule,
		files:  map[string]string{catalogFolder + "/limits.go": catalogLimits},
		edits: []edit{{
			file: catalogFolder + "/operator.go",
			from: `clientcmd.BuildConfigFromFlags("", kubeconfigPath)`,
			to:   `withLimits(clientcmd.BuildConfigFromFlags("", kubeconfigPath))`,
		}},
	},
}

const catalogFolder = "pkg/controller/operators/catalog"

const catalogLimits = `package catalog

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

func withLimits(config *rest.Config, err error) (*rest.Config, error) {
	text := os.Getenv("` + ClientQPS + `")
	if err != nil || text == "" {
		return config, err
	}
	if _, err := fmt.Sscan(text, &config.QPS); err != nil {
		return nil, fmt.Errorf("` + ClientQPS + ` is no number: %w", err)
	}
	config.Burst = int(2 * config.QPS)
	return config, nil
}
`

// groupsOf returns the groups that make the named artifacts, each once, in the order of the names.
func groupsOf(names []string) ([]group, error) {
	var found []group
	for _, name := range names {
		makes := func(g group) bool {
			return slices.ContainsFunc(g.artifacts, func(a artifact) bool { return a.name == name })
		}
		if slices.ContainsFunc(found, makes) {
			continue
		}
		i := slices.IndexFunc(groups, makes)
		if i < 0 {
			return nil, fmt.Errorf("find component %q: %w", name, ErrUnknown)
		}
		found = append(found, groups[i])
	}
	return found, nil
}
