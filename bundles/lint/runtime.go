// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/bundles"
)

// runtimeRules are about how the operator itself runs.
func runtimeRules() []Rule {
	return slices.Concat([]Rule{{
		ID: "runtime-cpu-request", Title: "A container requests no CPU", Severity: Warning,
		Check: eachContainer(checkRequest(corev1.ResourceCPU)),
		Why: "On a busy node the operator gets no time: it loses its lease, misses its probes and restarts, at the " +
			"moment when it is needed. The validator of operator-framework/api accepts a request for memory only.",
		Fix: "Request what the operator uses at rest, such as `cpu: 10m`. Leave the limit out, or well above.",
	}, {
		ID: "runtime-memory-request", Title: "A container requests no memory", Severity: Warning,
		Check: eachContainer(checkRequest(corev1.ResourceMemory)),
		Why: "The scheduler puts the Pod where there is no memory left, and the kernel kills it first. The validator " +
			"of operator-framework/api accepts a request for CPU only.",
		Fix: "Request what the operator uses on a large cluster: caches grow with what it watches.",
	}, {
		ID: "runtime-liveness", Title: "A container has no liveness probe", Severity: Warning,
		Check: eachContainer(checkLiveness),
		Why:   "An operator that stops responding is not restarted until somebody notices.",
		Fix:   "Add a `livenessProbe` on `/healthz`; controller-runtime serves it (`--health-probe-bind-address`).",
	}, {
		ID: "runtime-readiness", Title: "A container has no readiness probe", Severity: Warning,
		Check: eachContainer(checkReadiness),
		Why: "OLM takes a Deployment for available, and the ClusterServiceVersion for Succeeded, as soon as the " +
			"process runs. An upgrade " +
			"to a version that cannot start its work counts as a success, and webhooks get requests before they can " +
			"answer.",
		Fix: "Add a `readinessProbe` on `/readyz` that fails until caches are filled.",
	}, {
		ID: "runtime-leader-election", Title: "Several replicas do not agree on a leader", Severity: Error,
		Check: eachDeployment(checkLeaderElection),
		Why: "Two active replicas undo each other's changes, and create duplicate objects. If the " +
			"operator elects a leader but may not use Leases, no replica ever starts to work.",
		Fix: "Start the operator with `--leader-elect`, and give it `get`, `create` and `update` on " +
			"`leases.coordination.k8s.io` in " +
			"`permissions`. Or run one replica. Waive this finding if the replicas share their work by other means.",
	}, {
		ID: "runtime-metrics", Title: "The operator's metrics cannot be collected", Severity: Info, Check: checkMetrics,
		Why: "Without metrics, an operator that always fails looks like one that has nothing to do, " +
			"and no objective can be set.",
		Fix: "Name a port of the container `metrics` (or such), and add a Service that selects the Pod and has that " +
			"port.",
	}, {
		ID: "runtime-pdb", Title: "Several replicas have no PodDisruptionBudget", Severity: Warning,
		Check: eachDeployment(checkHasPDB),
		Why: "A drain may evict all replicas at once, and with them the webhooks that they serve. Several replicas " +
			"are then no better than one.",
		Fix: "Add a PodDisruptionBudget with `maxUnavailable: 1` that selects the Pods; OLM installs it with the " +
			"bundle.",
	}, {
		ID: "runtime-priority-class", Title: "The operator's Pods have no priority class", Severity: Info,
		Check: eachDeployment(checkPriority),
		Why: "When a node runs out of resources, Pods without a priority are evicted first, and the operator's " +
			"resources are no longer reconciled.",
		Fix: "Set `priorityClassName`: `system-cluster-critical` if the cluster cannot work without the operator, " +
			"otherwise a class in the bundle.",
	}, accountRule(), missingRule()}, securityRules())
}

func accountRule() Rule {
	return Rule{
		ID: "runtime-service-account", Title: "A Deployment runs as a service account that nobody makes",
		Severity: Error, Check: eachDeployment(checkAccount),
		Why: "OLM makes the service accounts that `permissions` and `clusterPermissions` name, and no others. The " +
			"Pods of a Deployment with another account are refused, and the installation never succeeds.",
		Fix: "List the account in `permissions`, with `rules: []` if it needs no rights; or run the Deployment as " +
			"another account.",
	}
}

func missingRule() Rule {
	return Rule{
		ID: "runtime-missing-object", Title: "A Deployment needs a ConfigMap or a Secret that the bundle does not have",
		Severity: Warning, Check: checkMissing,
		Why: "A Pod does not start as long as a ConfigMap or a Secret of its volumes or variables is missing, and " +
			"the ClusterServiceVersion never succeeds. What another Deployment of the bundle is told the name of, " +
			"and what OLM or OpenShift make, is not reported.",
		Fix: "Add the object to the bundle, set `optional: true`, or have the operator read it when it runs. Waive " +
			"this finding if another Deployment of the operator makes it, or if users make it before they install " +
			"the operator; then say so in the description.",
	}
}

func checkMissing(in *Input) []Finding {
	var out []Finding
	for _, m := range in.Bundle.MissingObjects() {
		out = append(out, at(in.Bundle.CSVObject(),
			fmt.Sprintf("deployment %s needs %s %s, which the bundle does not have", m.Deployment, m.Kind, m.Name),
			slices.Concat(m.Deployments, m.Path)...))
	}
	return out
}

func securityRules() []Rule {
	return []Rule{{
		ID: "runtime-run-as-root", Title: "A container may run as root", Severity: Warning,
		Check: eachContainer(checkRoot),
		Why: "A process that escapes from the container is root on the node. Namespaces that enforce the " +
			"restricted Pod " +
			"Security Standard refuse the Pod, so that the operator never starts there.",
		Fix: "Set `securityContext.runAsNonRoot: true` on the Pod, and give the image a numeric `USER`. Leave " +
			"`runAsUser` out: OpenShift chooses one.",
	}, {
		ID: "runtime-privilege-escalation", Title: "A container may gain privileges", Severity: Warning,
		Check: eachContainer(checkPrivileges),
		Why: "A privileged container has full access to the node, and a set-uid program in the image can make any " +
			"user root. The " +
			"restricted Pod Security Standard refuses both.",
		Fix: "Set `securityContext.allowPrivilegeEscalation: false`, and no `privileged: true`, on every container.",
	}, {
		ID: "runtime-host-access", Title: "The operator's Pods share the node with everything on it", Severity: Warning,
		Check: checkHostAccess,
		Why: "With `hostPID`, `hostIPC`, `hostNetwork` or a volume of the node's own files, an attacker in the " +
			"operator's Pod reaches other Pods and the node itself: with `hostPath: /` it has the kubelet's " +
			"credentials. The baseline Pod Security Standard refuses such Pods.",
		Fix: "Let a DaemonSet that the operator creates do what needs the node, with nothing else in it. Otherwise " +
			"mount the one folder that is needed, with `readOnly: true`.",
	}, {
		ID: "runtime-capabilities", Title: "A container keeps capabilities that it does not need", Severity: Warning,
		Check: eachContainer(checkCapabilities),
		Why: "The default set lets a container forge packets and change owners of files. An operator that only " +
			"uses the API server needs none. The restricted Pod Security Standard refuses the Pod.",
		Fix: "Set `securityContext.capabilities.drop: [ALL]` on every container; add NET_BIND_SERVICE at most.",
	}, {
		ID: "runtime-seccomp", Title: "A container has no seccomp profile", Severity: Warning,
		Check: eachContainer(checkSeccomp),
		Why: "Without a profile, the container can use every system call of the kernel. The restricted Pod " +
			"Security Standard " +
			"refuses the Pod.",
		Fix: "Set `securityContext.seccompProfile: {type: RuntimeDefault}` on the Pod.",
	}, {
		ID: "runtime-writable-root", Title: "A container can write to its own image", Severity: Info,
		Check: eachContainer(checkReadOnly),
		Why: "An attacker can store programs there, and files that the operator writes there use the node's disk " +
			"without a limit.",
		Fix: "Set `securityContext.readOnlyRootFilesystem: true`, and mount an `emptyDir` where the operator has to " +
			"write.",
	}}
}

// deployment is one of the operator's.
type deployment struct {
	operatorsv1alpha1.StrategyDeploymentSpec
	bundle *bundles.Bundle
	path   []any
}

// container is one that runs for as long as the operator does, or before it.
type container struct {
	corev1.Container
	bundle *bundles.Bundle
	pod    *corev1.PodSpec
	init   bool
	path   []any
}

func deployments(b *bundles.Bundle) []deployment {
	var out []deployment
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		out = append(out, deployment{d, b, []any{"spec", "install", "spec", "deployments", i}})
	}
	return out
}

func (d deployment) replicas() int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

func (d deployment) containers() []container {
	var out []container
	pod := &d.Spec.Template.Spec
	at := slices.Concat(d.path, []any{"spec", "template", "spec"})
	for i, c := range pod.InitContainers {
		out = append(out, container{c, d.bundle, pod, true, slices.Concat(at, []any{"initContainers", i})})
	}
	for i, c := range pod.Containers {
		out = append(out, container{c, d.bundle, pod, false, slices.Concat(at, []any{"containers", i})})
	}
	return out
}

// eachDeployment makes a check of the bundle out of one of a Deployment, which returns a message and the path below it;
// an empty message is none.
func eachDeployment(check func(deployment) (string, []any)) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, d := range deployments(in.Bundle) {
			if message, path := check(d); message != "" {
				out = append(out, at(in.Bundle.CSVObject(), fmt.Sprintf("deployment %s %s", d.Name, message),
					slices.Concat(d.path, path)...))
			}
		}
		return out
	}
}

// eachContainer is the same for a container.
func eachContainer(check func(container) (string, []any)) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, d := range deployments(in.Bundle) {
			for _, c := range d.containers() {
				if message, path := check(c); message != "" {
					out = append(out, at(in.Bundle.CSVObject(),
						fmt.Sprintf("container %s of deployment %s %s", c.Name, d.Name, message),
						slices.Concat(c.path, path)...))
				}
			}
		}
		return out
	}
}

func checkRequest(resource corev1.ResourceName) func(container) (string, []any) {
	return func(c container) (string, []any) {
		// A limit without a request is the request.
		if !c.Resources.Requests.Name(resource, "").IsZero() || !c.Resources.Limits.Name(resource, "").IsZero() {
			return "", nil
		}
		return fmt.Sprintf("requests no %s", resource), []any{"resources", "requests"}
	}
}

func checkLiveness(c container) (string, []any) {
	if c.init || c.LivenessProbe != nil {
		return "", nil
	}
	return "has no liveness probe", nil
}

func checkReadiness(c container) (string, []any) {
	if c.init || c.ReadinessProbe != nil {
		return "", nil
	}
	return "has no readiness probe", nil
}

func checkLeaderElection(d deployment) (string, []any) {
	if d.replicas() < 2 {
		return "", nil
	}
	at := []any{"spec", "replicas"}
	elects := elects(d)
	switch {
	case elects == no:
		return fmt.Sprintf("has %d replicas, and leader election is off", d.replicas()), at
	case !mayElect(d.bundle) && elects == yes:
		return fmt.Sprintf("has %d replicas that elect a leader, and no right to leases", d.replicas()), at
	case !mayElect(d.bundle) && !d.servesWebhooksOnly():
		return fmt.Sprintf("has %d replicas, and neither a flag for leader election nor a right to leases",
			d.replicas()), at
	}
	return "", nil
}

// servesWebhooksOnly says whether the operator proper is another Deployment; all replicas of a web server may answer.
func (d deployment) servesWebhooksOnly() bool {
	return len(deployments(d.bundle)) > 1 && slices.ContainsFunc(d.bundle.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return w.DeploymentName == d.Name })
}

// answer is what can be told of something that may as well be written in a program.
type answer int

const (
	unknown answer = iota
	yes
	no
)

// elects looks for the flag that operators conventionally have: --leader-elect, --enable-leader-election,
// --leader-election and so on.
func elects(d deployment) answer {
	for _, c := range d.containers() {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			flag, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if flag = strings.ReplaceAll(strings.TrimPrefix(flag, "enable-"), "election",
				"elect"); flag != "leader-elect" {
				continue
			}
			if given && value != "true" {
				return no
			}
			return yes
		}
	}
	return unknown
}

func mayElect(b *bundles.Bundle) bool {
	return slices.ContainsFunc(grants(b), func(g grant) bool {
		return covers(g, tuple{group: "coordination.k8s.io", resource: "leases", verb: "update"}) ||
			covers(g, tuple{group: "coordination.k8s.io", resource: "leases", verb: "patch"}) ||
			covers(g, tuple{resource: "configmaps", verb: "update"})
	})
}

// checkMetrics looks at all Deployments together: one that serves metrics is enough.
func checkMetrics(in *Input) []Finding {
	all := deployments(in.Bundle)
	if len(all) == 0 || hasKind(in.Bundle, "PodMonitor") || slices.ContainsFunc(all, collected) {
		return nil
	}
	for _, d := range all {
		if slices.ContainsFunc(d.containers(), func(c container) bool {
			return slices.ContainsFunc(c.Ports,
				isMetrics)
		}) {
			return []Finding{at(in.Bundle.CSVObject(),
				fmt.Sprintf("deployment %s has a port for metrics, and no Service exposes it", d.Name), d.path...)}
		}
	}
	return []Finding{at(in.Bundle.CSVObject(), "no container has a port for metrics, and no Service exposes one",
		"spec", "install", "spec", "deployments")}
}

func isMetrics(p corev1.ContainerPort) bool { return strings.Contains(p.Name, "metrics") }

func hasKind(b *bundles.Bundle, kind string) bool {
	return slices.ContainsFunc(b.Objects, func(o *bundles.Object) bool { return o.GetKind() == kind })
}

// collected says whether a Service of the bundle leads to the Deployment's metrics. Where a ServiceMonitor comes with
// it, any does.
func collected(d deployment) bool {
	return slices.ContainsFunc(d.bundle.Objects, func(o *bundles.Object) bool {
		var service corev1.Service
		if o.GetKind() != "Service" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object,
			&service) != nil ||
			len(service.Spec.Selector) == 0 || !within(service.Spec.Selector, d.Spec.Template.Labels) {
			return false
		}
		return strings.Contains(service.Name, "metrics") || hasKind(d.bundle, "ServiceMonitor") ||
			slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return leadsToMetrics(d, p) })
	})
}

func leadsToMetrics(d deployment, p corev1.ServicePort) bool {
	if strings.Contains(p.Name+p.TargetPort.StrVal, "metrics") {
		return true
	}
	return slices.ContainsFunc(d.containers(), func(c container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool {
			return isMetrics(port) && port.ContainerPort == p.TargetPort.IntVal
		})
	})
}

func within(part, all map[string]string) bool {
	for k, v := range part {
		if have, ok := all[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func checkHasPDB(d deployment) (string, []any) {
	if d.replicas() < 2 || slices.ContainsFunc(d.bundle.Objects, func(o *bundles.Object) bool {
		var pdb policyv1.PodDisruptionBudget
		return o.GetKind() == "PodDisruptionBudget" &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &pdb) == nil &&
			selects(pdb.Spec.Selector, d.Spec.Template.Labels)
	}) {
		return "", nil
	}
	return fmt.Sprintf("has %d replicas, and no PodDisruptionBudget selects them", d.replicas()),
		[]any{"spec", "replicas"}
}

func checkAccount(d deployment) (string, []any) {
	account := bundles.AccountOf(d.Spec.Template.Spec)
	if account == bundles.DefaultAccount || d.bundle.HasAccount(account) {
		return "", nil
	}
	return fmt.Sprintf("runs as service account %s, which no permissions name", account),
		[]any{"spec", "template", "spec"}
}

func checkPriority(d deployment) (string, []any) {
	if d.Spec.Template.Spec.PriorityClassName != "" {
		return "", nil
	}
	return "has no priority class", []any{"spec", "template", "spec"}
}

func checkRoot(c container) (string, []any) {
	pod, own := podSecurity(c), ownSecurity(c)
	user, nonRoot := pod.RunAsUser, pod.RunAsNonRoot
	if own.RunAsUser != nil {
		user = own.RunAsUser
	}
	if own.RunAsNonRoot != nil {
		nonRoot = own.RunAsNonRoot
	}
	switch {
	case user != nil && *user == 0:
		return "runs as root", []any{"securityContext"}
	case nonRoot != nil && *nonRoot || nonRoot == nil && user != nil:
		return "", nil
	}
	return "may run as root", []any{"securityContext"}
}

func checkPrivileges(c container) (string, []any) {
	own := ownSecurity(c)
	switch {
	case own.Privileged != nil && *own.Privileged:
		return "is privileged", []any{"securityContext", "privileged"}
	case own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation:
		return "may gain privileges", []any{"securityContext", "allowPrivilegeEscalation"}
	}
	return "", nil
}

func checkHostAccess(in *Input) []Finding {
	var out []Finding
	for _, d := range deployments(in.Bundle) {
		for _, access := range bundles.NodeAccessOf(d.Spec.Template.Spec) {
			out = append(out, at(in.Bundle.CSVObject(), fmt.Sprintf("deployment %s %s", d.Name, access.What),
				slices.Concat(d.path, []any{"spec", "template", "spec"}, access.Path)...))
		}
	}
	return out
}

func checkCapabilities(c container) (string, []any) {
	own := ownSecurity(c)
	at := []any{"securityContext", "capabilities"}
	if own.Capabilities == nil || !slices.Contains(own.Capabilities.Drop, "ALL") {
		return "keeps the default capabilities", at
	}
	for _, added := range own.Capabilities.Add {
		if added != "NET_BIND_SERVICE" {
			return fmt.Sprintf("has the capability %s", added), at
		}
	}
	return "", nil
}

func checkSeccomp(c container) (string, []any) {
	at := []any{"securityContext", "seccompProfile"}
	profile := cmp.Or(ownSecurity(c).SeccompProfile, podSecurity(c).SeccompProfile)
	switch {
	case profile == nil:
		return "has no seccomp profile", at
	case profile.Type == corev1.SeccompProfileTypeUnconfined:
		return "runs without seccomp", at
	}
	return "", nil
}

func checkReadOnly(c container) (string, []any) {
	if own := ownSecurity(c); own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem {
		return "", nil
	}
	return "can write to its root file system", []any{"securityContext", "readOnlyRootFilesystem"}
}

func podSecurity(c container) *corev1.PodSecurityContext {
	return cmp.Or(c.pod.SecurityContext, &corev1.PodSecurityContext{})
}

func ownSecurity(c container) *corev1.SecurityContext {
	return cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
}
