// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what `bellwether demo` does on a cluster that somebody else made: what it creates, with which
// commands of the command line, what it removes, and when it refuses.
//
// Its input is what was observed of the cluster and of the registry. It talks to nothing.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/phrase"
)

const (
	// SystemNamespace is where hub and agent are installed.
	SystemNamespace = "bellwether-system"
	// Namespace has the sample catalog, and the sample operator's ManagedOperator.
	Namespace = "bellwether-demo"
	// Cluster is the cluster's name in the fleet, of which it is the only member.
	Cluster = "local"
	// Label marks the namespaces of a demo. Nothing is changed or removed on a cluster that has others of these names.
	Label = "bellwether.dev/demo"
	// HubRelease is the Helm release of the hub.
	HubRelease = "bellwether"
	// HubServer is where pods reach the API server of their own cluster.
	HubServer = "https://kubernetes.default.svc"

	guide = "https://github.com/bellwether-dev/bellwether/blob/main/docs/guides/try-on-your-cluster.md"
)

// Namespaces are those that belong to the demo alone: of hub and agent, of the catalog, of the cluster on the hub, and
// of the sample operator.
func Namespaces() []string {
	return []string{SystemNamespace, Namespace, "bellwether-" + Cluster, Package}
}

// marked are the namespaces that the demo creates itself; hub and agent create the others.
var marked = []string{SystemNamespace, Namespace}

// Presence is what was observed of a namespace.
type Presence struct {
	Exists, Marked, Terminating bool
}

// Image is an image of a release, as the registry has it.
type Image struct {
	Repository, Tag string
	// Digest is empty where the registry was not asked: the image is then named by its tag.
	Digest string
	// Problem says why the image cannot be read; empty where it can.
	Problem string
}

// String is the image's full name.
func (i Image) String() string {
	if i.Digest != "" {
		return i.Repository + "@" + i.Digest
	}
	return i.Repository + ":" + i.Tag
}

// Images are what the demo runs: hub and agent, and the command line's image for the catalog and the sample operator.
type Images struct{ Hub, Agent, Bellwether Image }

// Observation is what is known before anything is done.
type Observation struct {
	// Context of the kubeconfig, and the API server that it leads to.
	Context, Server string
	// Kubernetes is the version of the API server; Required is what the chart supports, as in ">=1.30.0-0".
	Kubernetes, Required string
	// Administrator says that the user may do everything.
	Administrator bool
	// OLM says that the API of OLM v0 is served.
	OLM bool
	// Installed says that the cluster has CRDs of Bellwether.
	Installed bool
	// Namespaces are those that exist of Namespaces().
	Namespaces map[string]Presence
	// Clusters are the members of the fleet, and Operators the ManagedOperators as NAMESPACE/NAME.
	Clusters, Operators []string
	// Version is the one that the sample operator's ManagedOperator asks for; empty if there is none.
	Version string
	Images  Images
}

// Options say how the demo is installed.
type Options struct {
	// Program is how the user calls the command line.
	Program string
	// Kubeconfig is the file that the user named; empty for the usual one.
	Kubeconfig string
	// HubServer is where the agent reaches the hub.
	HubServer string
	// Values are chart values for hub and agent.
	Values []string
	// Timeout of each step, as a flag.
	Timeout string
	// CatalogAddress is the address of the sample catalog's Service, which is known once that exists.
	CatalogAddress string
}

// Problem keeps the demo from being installed or removed.
type Problem struct{ Text, Remedy string }

// Step is done in this order: objects are applied one after the other, where a Deployment has to run and a catalog to
// be read before the next one; the command is run; the Helm release is uninstalled; the namespaces are deleted; the
// objects are removed.
type Step struct {
	Title string
	Apply []*unstructured.Unstructured
	// Run are the arguments of a command of this command line.
	Run       []string
	Uninstall string
	Delete    []string
	Remove    []*unstructured.Unstructured
}

// Install plans the installation. On a cluster where an earlier run did not come to its end it is the same plan: what
// was done already is not done again, or changes nothing.
func Install(o Observation, w Options) ([]Step, []Problem) {
	if problems := obstacles(o); len(problems) > 0 {
		return nil, problems
	}
	steps := []Step{
		{Title: "Create the namespaces of the demo", Apply: namespaces()},
		{Title: "Install the hub", Run: slices.Concat([]string{"install", "hub"}, w.cluster(o),
			image("hub", o.Images.Hub), []string{"--set", "hub.replicas=1", "--set", "crds.keep=false"}, w.values(),
			[]string{"--timeout", w.Timeout})},
		{Title: "Serve a catalog with the sample operator", Apply: catalogServer(o.Images.Bellwether.String())},
		{Title: "Join this cluster to its own fleet", Run: slices.Concat(
			[]string{"fleet", "join", Cluster, "--labels", "stage=demo", "--hub-server", w.HubServer}, w.cluster(o),
			w.member(o), image("agent", o.Images.Agent), w.values(), []string{"--timeout", w.Timeout})},
	}
	if o.Version != After {
		steps = append(steps, w.rollOut(o, "Install version "+Before+" of the sample operator", Before))
	}
	return append(steps, w.rollOut(o, "Upgrade it to version "+After, After),
		Step{Title: "Show what runs", Run: slices.Concat([]string{"versions", "-A"}, w.cluster(o))}), nil
}

// rollOut has the hub bring the cluster to a version, and shows the rollout until it ends.
func (w Options) rollOut(o Observation, title, version string) Step {
	return Step{Title: title, Apply: operator(w.CatalogAddress, version),
		Run: slices.Concat([]string{"rollout", "status", Namespace + "/" + Operator, "--version", version, "--wait",
			"--timeout", w.Timeout}, w.cluster(o))}
}

// cluster are the flags that select the cluster as the hub.
func (w Options) cluster(o Observation) []string {
	if w.Kubeconfig == "" {
		return []string{"--context", o.Context}
	}
	return []string{"--kubeconfig", w.Kubeconfig, "--context", o.Context}
}

// member are the flags that select the same cluster as a member of the fleet.
func (w Options) member(o Observation) []string {
	if w.Kubeconfig == "" {
		return []string{"--cluster-context", o.Context}
	}
	return []string{"--cluster-kubeconfig", w.Kubeconfig, "--cluster-context", o.Context}
}

func (w Options) values() []string {
	var out []string
	for _, v := range w.Values {
		out = append(out, "--set", v)
	}
	return out
}

// image are the chart values that name an image.
func image(part string, i Image) []string {
	out := []string{"--set", part + ".image.repository=" + i.Repository}
	if i.Digest != "" {
		return append(out, "--set", part+".image.digest="+i.Digest)
	}
	return append(out, "--set", part+".image.tag="+i.Tag)
}

// obstacles are all reasons not to install the demo.
func obstacles(o Observation) []Problem {
	var out []Problem
	add := func(remedy, format string, args ...any) {
		out = append(out, Problem{Text: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if !supported(o.Kubernetes, o.Required) {
		add("use a cluster with another version", "Kubernetes %s is not supported: Bellwether needs %s",
			o.Kubernetes, strings.TrimSuffix(o.Required, "-0"))
	}
	if !o.Administrator {
		add("use a kubeconfig with the ClusterRole cluster-admin: hub, agent and OLM are given permissions, which "+
			"only those can do who have them", "you are not an administrator of this cluster")
	}
	if !o.OLM {
		add("install the Operator Lifecycle Manager v0 and run this again: "+guide+"#olm",
			"the cluster does not serve the API of OLM v0 (operators.coreos.com/v1alpha1)")
	}
	demo := isDemo(o)
	if o.Installed && !demo {
		add("use another cluster: the demo installs a hub and an agent of its own",
			"Bellwether is installed on this cluster already")
	}
	for _, name := range Namespaces() {
		switch n := o.Namespaces[name]; {
		case n.Terminating:
			add("wait until it is gone, and run this again", "namespace %s is being deleted", name)
		case n.Exists && !n.Marked && !demo:
			add("use another cluster, or delete the namespace if nobody needs it",
				"namespace %s exists, and is not of a demo", name)
		}
	}
	for _, i := range []Image{o.Images.Hub, o.Images.Agent, o.Images.Bellwether} {
		if i.Problem != "" {
			add("name images that exist with --registry and --image-tag (make images builds and pushes them); if only "+
				"the nodes can read the registry, or have the images already, set --skip-image-check",
				"image %s cannot be read: %s", i, i.Problem)
		}
	}
	return out
}

// isDemo tells whether an earlier run began to install the demo: it marks a namespace before anything else.
func isDemo(o Observation) bool {
	return slices.ContainsFunc(marked, func(name string) bool { return o.Namespaces[name].Marked })
}

// supported compares a version of Kubernetes with the range of a chart. Providers append to the version, as in
// v1.33.1+k3s1 and v1.33.1-eks-931bdca.
func supported(version, required string) bool {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return false
	}
	within, err := semver.ParseRange(required)
	return err == nil && within(v)
}

// Remove plans the removal of everything that the demo created, however far it came.
func Remove(o Observation, w Options) ([]Step, []Problem) {
	if !isDemo(o) {
		return nil, []Problem{{Text: "there is no demo on this cluster: no namespace has the label " + Label,
			Remedy: "select the cluster with --kubeconfig or --context"}}
	}
	var problems []Problem
	others := func(have []string, own, what, remedy string) {
		have = slices.DeleteFunc(slices.Clone(have), func(name string) bool { return name == own })
		if len(have) > 0 {
			slices.Sort(have)
			problems = append(problems, Problem{Remedy: remedy,
				Text: "the hub of the demo has " + what + " of yours: " + phrase.First(have, 10)})
		}
	}
	others(o.Clusters, Cluster, "clusters", fmt.Sprintf("remove them first with `%s fleet remove NAME`", w.Program))
	others(o.Operators, Namespace+"/"+Operator, "operators",
		"delete their ManagedOperators first; removalPolicy says what happens on the cluster")
	if len(problems) > 0 {
		return nil, problems
	}
	var steps []Step
	if o.Installed {
		steps = append(steps, Step{Title: "Uninstall the sample operator and the agent",
			Run: slices.Concat([]string{"fleet", "remove", Cluster, "--offboarding", "Uninstall", "--yes",
				"--timeout", w.Timeout}, w.cluster(o), w.member(o))})
	}
	return append(steps,
		Step{Title: "Delete the catalog, and the operator on the hub", Delete: []string{Namespace}},
		Step{Title: "Uninstall the hub with its CRDs", Uninstall: HubRelease},
		Step{Title: "Delete the hub's namespace, and what OLM leaves of the sample operator",
			Delete: []string{SystemNamespace}, Remove: leftByOLM()}), nil
}
