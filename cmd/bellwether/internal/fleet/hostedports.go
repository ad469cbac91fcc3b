// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/serve"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/exit"
)

// portsEach is how many operators a hosted cluster may have by default.
const portsEach = charts.HostedViewPorts

// hostedAgents are the hosted agents of a namespace.
type hostedAgents struct {
	deployment, release string
	ports               serve.Ports
}

// takenPorts are those of a hosted cluster.
type takenPorts struct {
	serve.Ports
	cluster string
}

// hostedPorts returns the ports that the user names, those that the cluster has, or
// free ones. It returns none that the hosted agents would refuse.
func hostedPorts(ctx context.Context, h client.Reader, o *hostedOptions, name string) (string, error) {
	own, taken, err := portsInUse(ctx, h, o.namespace, name)
	if err != nil {
		return "", err
	}
	agents, err := findHostedAgents(ctx, h, o.namespace)
	if o.ports != "" {
		// Agents that the chart did not install may run anywhere, with ports that only the user knows.
		return o.ports, checkPorts(o.ports, agents, taken)
	}
	if own != (serve.Ports{}) && (agents == nil || agents.ports.Includes(own)) && overlapping(own, taken) == nil {
		return own.String(), nil
	}
	if err != nil {
		return "", err
	}
	free := freePorts(agents.ports.First, taken)
	if free.Last > agents.ports.Last {
		return "", agents.full(o.namespace, taken, free)
	}
	return free.String(), nil
}

// portsInUse returns the ports in a cluster's own Secret, if there are some, and those of
// the other hosted clusters.
func portsInUse(ctx context.Context, h client.Reader, namespace, name string) (own serve.Ports, taken []takenPorts,
	err error) {
	var secrets corev1.SecretList
	if err := h.List(ctx, &secrets, client.InNamespace(namespace),
		client.HasLabels{v1alpha1.LabelHostedCluster}); err != nil {
		return serve.Ports{}, nil, fmt.Errorf("list the hosted clusters: %w", err)
	}
	for i := range secrets.Items {
		r, err := serve.ParsePorts(string(secrets.Items[i].Data[v1alpha1.HostedPortsKey]))
		switch {
		case err != nil: // the agents refuse it too
		case secrets.Items[i].Name == name:
			own = r
		default:
			taken = append(taken, takenPorts{r, secrets.Items[i].Labels[v1alpha1.LabelHostedCluster]})
		}
	}
	slices.SortFunc(taken, func(a, b takenPorts) int { return cmp.Compare(a.First, b.First) })
	return own, taken, nil
}

// findHostedAgents reads the ports from the arguments of the agents' Deployment, since they are what the agent refuses
// others by. The Service of the views has the same ones, but not every installation has that Service.
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
			if argument(c, "hosted-namespace") != namespace {
				continue
			}
			text := cmp.Or(argument(c, "view-ports"), serve.DefaultPorts.String())
			ports, err := serve.ParsePorts(text)
			if err != nil {
				return nil, exit.Hintf("set agent.viewPorts of the hosted agents' chart",
					"Deployment %s/%s has no range of ports as --view-ports: %q", namespace, d.Name, text)
			}
			return &hostedAgents{deployment: d.Name, release: d.Labels["app.kubernetes.io/instance"], ports: ports}, nil
		}
	}
	return nil, exit.Hintf(installHosted(namespace)+"; if they are not a Deployment, name free ports by --view-ports",
		"no hosted agents run in namespace %s", namespace)
}

// argument returns the value of a flag of an agent; empty if it is not set. As for the agent, the last one counts, and
// the environment only without any.
func argument(c corev1.Container, flag string) string {
	for i, a := range slices.Backward(c.Args) {
		if value, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			return value
		}
		if a == "--"+flag && i+1 < len(c.Args) {
			return c.Args[i+1]
		}
	}
	variable := "BELLWETHER_AGENT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	for _, e := range c.Env {
		if e.Name == variable {
			return e.Value
		}
	}
	return ""
}

// checkPorts tells why hosted agents would refuse ports. agents may be nil: which ports they have is not known then.
func checkPorts(text string, agents *hostedAgents, taken []takenPorts) error {
	ports, err := serve.ParsePorts(text)
	if err != nil {
		return exit.Hintf("use the form 50100-50129", "invalid value %q of --view-ports", text)
	}
	if agents != nil && !agents.ports.Includes(ports) {
		return exit.Hintf("name ports among those, or change agent.viewPorts of the hosted agents' chart",
			"--view-ports %s is not within the ports of the hosted agents, %s", ports, agents.ports)
	}
	if other := overlapping(ports, taken); other != nil {
		return exit.Hintf("name other ports, or leave the flag out to get free ones",
			"some of the ports %s are those of hosted cluster %s, %s", ports, other.cluster, other.Ports)
	}
	return nil
}

func overlapping(ports serve.Ports, taken []takenPorts) *takenPorts {
	i := slices.IndexFunc(taken, func(t takenPorts) bool { return t.Overlaps(ports) })
	if i < 0 {
		return nil
	}
	return &taken[i]
}

// freePorts returns the lowest range from a port on that overlaps with none. It may go
// beyond the last port that there is. taken is sorted.
func freePorts(first int, taken []takenPorts) serve.Ports {
	free := serve.Ports{First: first, Last: first + portsEach - 1}
	for _, t := range taken {
		if free.Last < t.First {
			break
		}
		if t.Last >= free.First {
			free = serve.Ports{First: t.Last + 1, Last: t.Last + portsEach}
		}
	}
	return free
}

// full says that there is no room for another cluster, and how to make some. next are
// the ports that it would get.
func (a *hostedAgents) full(namespace string, taken []takenPorts, next serve.Ports) error {
	used := 0
	for _, t := range taken {
		used += t.Size()
	}
	chart := "the hosted agents' chart"
	if a.release != "" {
		chart = fmt.Sprintf("Helm release %s in namespace %s", a.release, namespace)
	}
	hint := fmt.Sprintf("raise agent.viewPorts.last of %s to %d", chart, next.Last)
	elsewhere := "install hosted agents in another namespace, and name that by --hosted-namespace"
	switch {
	case next.Last > serve.MaxPort:
		hint = elsewhere
	case next.Last-a.ports.First+1 > charts.MaxViewPorts:
		hint = fmt.Sprintf("%s. Or, since the chart's Service has at most %d ports (%d clusters), set "+
			"agent.hosted.service.enabled=false, route the ports to the agent in another way, and %s", elsewhere,
			charts.MaxViewPorts, charts.MaxViewPorts/portsEach, hint)
	}
	return exit.Hintf(hint, "no %d consecutive ports are free for another hosted cluster: the hosted agents have the "+
		"ports %s, enough for %d clusters with %d each; %d clusters use %d of them (Deployment %s/%s)", portsEach,
		a.ports, a.ports.Size()/portsEach, portsEach, len(taken), used, namespace, a.deployment)
}
