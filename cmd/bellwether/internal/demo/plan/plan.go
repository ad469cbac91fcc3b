// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what `bellwether demo` does on a cluster of the user: which objects it creates, which commands
// of the command line it runs, which objects it removes, and when it refuses.
//
// Its input is the observed state of the cluster and of the registry. It sends no requests.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bellwether-dev/bellwether/internal/phrase"
)

const (
	// SystemNamespace is the namespace of hub and agent.
	SystemNamespace = "bellwether-system"
	// Namespace has the sample catalog, and the sample operator's ManagedOperator.
	Namespace = "bellwether-demo"
	// Cluster is the name of the cluster in the fleet. It is the only member.
	Cluster = "local"
	// Label marks the namespaces of a demo. If a cluster has namespaces of these names
	// without the label, the demo changes nothing there.
	Label = "bellwether.dev/demo"
	// HubRelease is the Helm release of the hub.
	HubRelease = "bellwether"
	// HubServer is the URL at which pods reach the API server of their own cluster.
	HubServer = "https://kubernetes.default.svc"

	guideURL = "https://github.com/bellwether-dev/bellwether/blob/main/docs/guides/try-on-your-cluster.md"
)

// Namespaces returns the namespaces that only the demo uses: of hub and agent, of the catalog, of the cluster on the
// hub, and of the sample operator.
func Namespaces() []string {
	return []string{SystemNamespace, Namespace, "bellwether-" + Cluster, Package}
}

// markedNamespaces are the namespaces that the demo itself creates; hub and agent create the other namespaces.
var markedNamespaces = []string{SystemNamespace, Namespace}

// Presence is the observed state of a namespace.
type Presence struct {
	Exists, Marked, Terminating bool
}

// Image is an image of a release, as the registry has it.
type Image struct {
	Repository, Tag string
	// Digest is empty if the registry was not queried: the image is then referred to by its tag.
	Digest string
	// Problem is why the image cannot be read; empty if it can.
	Problem string
}

// String returns the full reference of the image.
func (i Image) String() string {
	if i.Digest != "" {
		return i.Repository + "@" + i.Digest
	}
	return i.Repository + ":" + i.Tag
}

// Images are the images that the demo runs: of hub and agent, and of the
// command line for the catalog and the sample operator.
type Images struct{ Hub, Agent, Bellwether Image }

// Observation is the state of the cluster and of the images before the demo changes anything.
type Observation struct {
	// Context is the context of the kubeconfig, and Server its API server.
	Context, Server string
	// Kubernetes is the version of the API server. Required is the range that the chart supports, as in ">=1.30.0-0".
	Kubernetes, Required string
	// Administrator is true if the user has all permissions.
	Administrator bool
	// OLM is true if the cluster serves the API of OLM v0.
	OLM bool
	// Installed is true if the cluster has CRDs of Bellwether.
	Installed bool
	// Namespaces has the namespaces of Namespaces() that exist.
	Namespaces map[string]Presence
	// Clusters are the members of the fleet, and Operators the ManagedOperators as NAMESPACE/NAME.
	Clusters, Operators []string
	// Version is the version in the sample operator's ManagedOperator; empty if it does not exist.
	Version string
	Images  Images
}

// Options set how the demo is installed.
type Options struct {
	// Program is the name under which the user runs the command line.
	Program string
	// Kubeconfig is the file that the user named; empty for the default file.
	Kubeconfig string
	// HubServer is the URL at which the agent reaches the hub.
	HubServer string
	// Values are chart values for hub and agent.
	Values []string
	// Timeout is the timeout of each step, as the value of a flag.
	Timeout string
	// CatalogAddress is the address of the sample catalog's Service; empty until the Service exists.
	CatalogAddress string
}

// Problem is a reason why the demo cannot be installed or removed.
type Problem struct{ Text, Remedy string }

// Step is one step of a plan. First the objects of Apply are applied one after the other; a Deployment must run and a
// catalog must be read before the next object is applied. Then the command of Run is run, the Helm release of
// Uninstall is uninstalled, the namespaces of Delete are deleted, and the objects of Remove are deleted.
type Step struct {
	Title string
	Apply []*unstructured.Unstructured
	// Run are the arguments of a command of this command line.
	Run       []string
	Uninstall string
	Delete    []string
	Remove    []*unstructured.Unstructured
}

// Install plans the installation. After a run that was interrupted the plan is the same, except that it does not go
// back to the version Before. Steps that are already done change nothing. The hub is installed with crds.keep=false, so
// that the removal also deletes its CRDs.
func Install(o Observation, options Options) ([]Step, []Problem) {
	if problems := findObstacles(o); len(problems) > 0 {
		return nil, problems
	}
	steps := []Step{
		{Title: "Create the namespaces of the demo", Apply: buildNamespaces()},
		{Title: "Install the hub", Run: slices.Concat([]string{"install", "hub"}, options.listHubFlags(o),
			listImageFlags("hub", o.Images.Hub), []string{"--set", "hub.replicas=1", "--set", "crds.keep=false"},
			options.listValueFlags(), []string{"--timeout", options.Timeout})},
		{Title: "Serve a catalog with the sample operator", Apply: buildCatalogServer(o.Images.Bellwether.String())},
		{Title: "Join this cluster to its own fleet", Run: slices.Concat(
			[]string{"fleet", "join", Cluster, "--labels", "stage=demo", "--hub-server", options.HubServer},
			options.listHubFlags(o), options.listMemberFlags(o), listImageFlags("agent", o.Images.Agent),
			options.listValueFlags(), []string{"--timeout", options.Timeout})},
	}
	if o.Version != After {
		steps = append(steps, options.planRollout(o, "Install version "+Before+" of the sample operator", Before))
	}
	return append(steps, options.planRollout(o, "Upgrade it to version "+After, After),
		Step{Title: "Show what runs", Run: slices.Concat([]string{"versions", "-A"}, options.listHubFlags(o))}), nil
}

// planRollout returns the step that has the hub install a version, and that shows the rollout until its end.
func (options Options) planRollout(o Observation, title, version string) Step {
	return Step{Title: title, Apply: buildOperator(options.CatalogAddress, version),
		Run: slices.Concat([]string{"rollout", "status", Namespace + "/" + Operator, "--version", version, "--wait",
			"--timeout", options.Timeout}, options.listHubFlags(o))}
}

// listHubFlags returns the flags that select the cluster as the hub.
func (options Options) listHubFlags(o Observation) []string {
	if options.Kubeconfig == "" {
		return []string{"--context", o.Context}
	}
	return []string{"--kubeconfig", options.Kubeconfig, "--context", o.Context}
}

// listMemberFlags returns the flags that select the same cluster as a member of the fleet.
func (options Options) listMemberFlags(o Observation) []string {
	if options.Kubeconfig == "" {
		return []string{"--cluster-context", o.Context}
	}
	return []string{"--cluster-kubeconfig", options.Kubeconfig, "--cluster-context", o.Context}
}

func (options Options) listValueFlags() []string {
	var out []string
	for _, v := range options.Values {
		out = append(out, "--set", v)
	}
	return out
}

// listImageFlags returns the flags with the chart values for an image.
func listImageFlags(part string, i Image) []string {
	out := []string{"--set", part + ".image.repository=" + i.Repository}
	if i.Digest != "" {
		return append(out, "--set", part+".image.digest="+i.Digest)
	}
	return append(out, "--set", part+".image.tag="+i.Tag)
}

// findObstacles returns all reasons why the demo cannot be installed: the cluster does not meet the requirements, it
// has another installation or namespaces that are not of a demo, or an image cannot be read.
func findObstacles(o Observation) []Problem {
	var out []Problem
	refuse := func(remedy, format string, args ...any) {
		out = append(out, Problem{Text: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if !isSupported(o.Kubernetes, o.Required) {
		refuse("use a cluster with another version", "Kubernetes %s is not supported: Bellwether needs %s",
			o.Kubernetes, strings.TrimSuffix(o.Required, "-0"))
	}
	if !o.Administrator {
		refuse("use a kubeconfig with the ClusterRole cluster-admin: hub, agent and OLM are given permissions, which "+
			"only those can do who have them", "you are not an administrator of this cluster")
	}
	if !o.OLM {
		refuse("install the Operator Lifecycle Manager v0 and run this again: "+guideURL+"#olm",
			"the cluster does not serve the API of OLM v0 (operators.coreos.com/v1alpha1)")
	}
	isOwnDemo := isDemo(o)
	if o.Installed && !isOwnDemo {
		refuse("use another cluster: the demo installs a hub and an agent of its own",
			"Bellwether is installed on this cluster already")
	}
	for _, name := range Namespaces() {
		switch n := o.Namespaces[name]; {
		case n.Terminating:
			refuse("wait until it is gone, and run this again", "namespace %s is being deleted", name)
		case n.Exists && !n.Marked && !isOwnDemo:
			refuse("use another cluster, or delete the namespace if nobody needs it",
				"namespace %s exists, and is not of a demo", name)
		}
	}
	for _, i := range []Image{o.Images.Hub, o.Images.Agent, o.Images.Bellwether} {
		if i.Problem != "" {
			refuse("name images that exist with --registry and --image-tag (make images builds and pushes them); if "+
				"only the nodes can read the registry, or have the images already, set --skip-image-check",
				"image %s cannot be read: %s", i, i.Problem)
		}
	}
	return out
}

// isDemo reports whether an earlier run began to install the demo: it labels a namespace first.
func isDemo(o Observation) bool {
	return slices.ContainsFunc(markedNamespaces, func(name string) bool { return o.Namespaces[name].Marked })
}

// isSupported reports whether a version of Kubernetes is in the range of a chart. Providers append to the version, as
// in v1.33.1+k3s1 and v1.33.1-eks-931bdca.
func isSupported(version, required string) bool {
	v, err := semver.ParseTolerant(version)
	if err != nil {
		return false
	}
	isInRange, err := semver.ParseRange(required)
	return err == nil && isInRange(v)
}

// Remove plans the removal of everything that the demo created, also after an incomplete installation.
func Remove(o Observation, options Options) ([]Step, []Problem) {
	if !isDemo(o) {
		return nil, []Problem{{Text: "there is no demo on this cluster: no namespace has the label " + Label,
			Remedy: "select the cluster with --kubeconfig or --context"}}
	}
	var problems []Problem
	addForeignProblem := func(names []string, demoName, kind, remedy string) {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == demoName })
		if len(names) > 0 {
			slices.Sort(names)
			problems = append(problems, Problem{Remedy: remedy,
				Text: "the hub of the demo has " + kind + " of yours: " + phrase.First(names, 10)})
		}
	}
	addForeignProblem(o.Clusters, Cluster, "clusters",
		fmt.Sprintf("remove them first with `%s fleet remove NAME`", options.Program))
	addForeignProblem(o.Operators, Namespace+"/"+Operator, "operators",
		"delete their ManagedOperators first; removalPolicy says what happens on the cluster")
	if len(problems) > 0 {
		return nil, problems
	}
	var steps []Step
	if o.Installed {
		steps = append(steps, Step{Title: "Uninstall the sample operator and the agent",
			Run: slices.Concat([]string{"fleet", "remove", Cluster, "--offboarding", "Uninstall", "--yes",
				"--timeout", options.Timeout}, options.listHubFlags(o), options.listMemberFlags(o))})
	}
	return append(steps,
		Step{Title: "Delete the catalog, and the operator on the hub", Delete: []string{Namespace}},
		Step{Title: "Uninstall the hub with its CRDs", Uninstall: HubRelease},
		Step{Title: "Delete the hub's namespace, and what OLM leaves of the sample operator",
			Delete: []string{SystemNamespace}, Remove: listOLMLeftovers()}), nil
}
