// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
	"github.com/bellwether-dev/bellwether/explain"
)

// portsPerCluster is the default number of ports, and so of operators, of a hosted cluster.
const portsPerCluster = charts.HostedViewPorts

// hostedAgents describes the Deployment of the hosted agents in a namespace.
type hostedAgents struct {
	deployment, release string
	ports               serve.Ports
}

// takenPorts are the ports of a hosted cluster.
type takenPorts struct {
	serve.Ports
	cluster string
}

// chooseHostedPorts returns the ports in --view-ports, else the cluster's current ports, else free ports. It returns
// an error instead of ports that the hosted agents would refuse. name is the name of the cluster's Secret.
func chooseHostedPorts(ctx context.Context, h client.Reader, o *hostedOptions, name string) (string, error) {
	current, taken, err := listPortsInUse(ctx, h, o.namespace, name)
	if err != nil {
		return "", err
	}
	agents, err := findHostedAgents(ctx, h, o.namespace)
	// If the chart did not install the agents, there is no Deployment, so this error is only returned below, where
	// free ports must be found.
	if o.ports != "" {
		return o.ports, checkPorts(o.ports, agents, taken)
	}
	isInRange := agents == nil || agents.ports.Includes(current)
	if current != (serve.Ports{}) && isInRange && findOverlap(current, taken) == nil {
		return current.String(), nil
	}
	if err != nil {
		return "", err
	}
	free := findFreePorts(agents.ports.First, taken)
	if free.Last > agents.ports.Last {
		return "", agents.newNoPortsError(o.namespace, taken, free)
	}
	return free.String(), nil
}

// listPortsInUse returns the ports in the cluster's own Secret, zero if it has none, and
// the ports of the other hosted clusters, sorted.
func listPortsInUse(ctx context.Context, h client.Reader, namespace, name string) (current serve.Ports,
	taken []takenPorts, err error) {
	var secrets corev1.SecretList
	if err := h.List(ctx, &secrets, client.InNamespace(namespace),
		client.HasLabels{v1alpha1.LabelHostedCluster}); err != nil {
		return serve.Ports{}, nil, fmt.Errorf("list the hosted clusters: %w", err)
	}
	for i := range secrets.Items {
		ports, err := serve.ParsePorts(string(secrets.Items[i].Data[v1alpha1.HostedPortsKey]))
		switch {
		case err != nil: // the agents refuse such a Secret too
		case secrets.Items[i].Name == name:
			current = ports
		default:
			taken = append(taken, takenPorts{ports, secrets.Items[i].Labels[v1alpha1.LabelHostedCluster]})
		}
	}
	slices.SortFunc(taken, func(a, b takenPorts) int { return cmp.Compare(a.First, b.First) })
	return current, taken, nil
}

// findHostedAgents reads the range of ports from the arguments of the agents' Deployment, because
// the agents check the ports of clusters against this range. The Service of the views has the
// same ports, but not every installation has it.
func findHostedAgents(ctx context.Context, h client.Reader, namespace string) (*hostedAgents, error) {
	var deployments appsv1.DeploymentList
	if err := h.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return nil, exit.Hint(fmt.Errorf("list the Deployments of the hosted agents: %w", err),
			"you need the permission to list deployments in namespace "+namespace+
				"; without it, name free ports by --view-ports")
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		for _, c := range d.Spec.Template.Spec.Containers {
			if explain.ReadFlag(c, "hosted-namespace") != namespace {
				continue
			}
			text := cmp.Or(explain.ReadFlag(c, "view-ports"), serve.DefaultPorts.String())
			ports, err := serve.ParsePorts(text)
			if err != nil {
				return nil, exit.Hintf("set agent.viewPorts of the hosted agents' chart",
					"Deployment %s/%s has no range of ports as --view-ports: %q", namespace, d.Name, text)
			}
			return &hostedAgents{deployment: d.Name, release: d.Labels["app.kubernetes.io/instance"], ports: ports}, nil
		}
	}
	return nil, exit.Hintf(
		formatInstallHint(namespace)+"; if they are not a Deployment, name free ports by --view-ports",
		"no hosted agents run in namespace %s", namespace)
}

// checkPorts returns an error if hosted agents would refuse the ports in text. If agents is nil,
// their range of ports is unknown and not checked.
func checkPorts(text string, agents *hostedAgents, taken []takenPorts) error {
	ports, err := serve.ParsePorts(text)
	if err != nil {
		return exit.Hintf("use the form 50100-50129", "invalid value %q of --view-ports", text)
	}
	if agents != nil && !agents.ports.Includes(ports) {
		return exit.Hintf("name ports among those, or change agent.viewPorts of the hosted agents' chart",
			"--view-ports %s is not within the ports of the hosted agents, %s", ports, agents.ports)
	}
	if overlapping := findOverlap(ports, taken); overlapping != nil {
		return exit.Hintf("name other ports, or leave the flag out to get free ones",
			"some of the ports %s are those of hosted cluster %s, %s", ports, overlapping.cluster, overlapping.Ports)
	}
	return nil
}

// findOverlap returns the first hosted cluster that has some of the ports, or nil.
func findOverlap(ports serve.Ports, taken []takenPorts) *takenPorts {
	i := slices.IndexFunc(taken, func(t takenPorts) bool { return t.Overlaps(ports) })
	if i < 0 {
		return nil
	}
	return &taken[i]
}

// findFreePorts returns the lowest free range of portsPerCluster ports at or above first. The range may exceed the
// highest valid port. taken is sorted.
func findFreePorts(first int, taken []takenPorts) serve.Ports {
	free := serve.Ports{First: first, Last: first + portsPerCluster - 1}
	for _, t := range taken {
		if free.Last < t.First {
			break
		}
		if t.Last >= free.First {
			free = serve.Ports{First: t.Last + 1, Last: t.Last + portsPerCluster}
		}
	}
	return free
}

// newNoPortsError returns the error that no ports are free for another cluster, with a hint how to add ports. next
// are the ports that the cluster would get.
func (a *hostedAgents) newNoPortsError(namespace string, taken []takenPorts, next serve.Ports) error {
	used := 0
	for _, t := range taken {
		used += t.Size()
	}
	chart := "the hosted agents' chart"
	if a.release != "" {
		chart = fmt.Sprintf("Helm release %s in namespace %s", a.release, namespace)
	}
	hint := fmt.Sprintf("raise agent.viewPorts.last of %s to %d", chart, next.Last)
	otherNamespace := "install hosted agents in another namespace, and name that by --hosted-namespace"
	switch {
	case next.Last > serve.MaxPort:
		hint = otherNamespace
	case next.Last-a.ports.First+1 > charts.MaxViewPorts:
		hint = fmt.Sprintf("%s. Or, since the chart's Service has at most %d ports (%d clusters), set "+
			"agent.hosted.service.enabled=false, route the ports to the agent in another way, and %s", otherNamespace,
			charts.MaxViewPorts, charts.MaxViewPorts/portsPerCluster, hint)
	}
	return exit.Hintf(hint, "no %d consecutive ports are free for another hosted cluster: the hosted agents have the "+
		"ports %s, enough for %d clusters with %d each; %d clusters use %d of them (Deployment %s/%s)", portsPerCluster,
		a.ports, a.ports.Size()/portsPerCluster, portsPerCluster, len(taken), used, namespace, a.deployment)
}
