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

// listRuntimeRules returns the rules about the Deployments and containers of the operator.
func listRuntimeRules() []Rule {
	return slices.Concat([]Rule{{
		ID: "runtime-cpu-request", Title: "A container requests no CPU", Severity: Warning,
		Check: checkEachContainer(checkRequest(corev1.ResourceCPU)),
		Why: "On a busy node the operator gets no time: it loses its lease, misses its probes and restarts, at the " +
			"moment when it is needed. The validator of operator-framework/api accepts a request for memory only.",
		Fix: "Request what the operator uses at rest, such as `cpu: 10m`. Leave the limit out, or well above.",
	}, {
		ID: "runtime-memory-request", Title: "A container requests no memory", Severity: Warning,
		Check: checkEachContainer(checkRequest(corev1.ResourceMemory)),
		Why: "The scheduler puts the Pod where there is no memory left, and the kernel kills it first. The validator " +
			"of operator-framework/api accepts a request for CPU only.",
		Fix: "Request what the operator uses on a large cluster: caches grow with what it watches.",
	}, {
		ID: "runtime-liveness", Title: "A container has no liveness probe", Severity: Warning,
		Check: checkEachContainer(checkLiveness),
		Why:   "An operator that stops responding is not restarted until somebody notices.",
		Fix:   "Add a `livenessProbe` on `/healthz`; controller-runtime serves it (`--health-probe-bind-address`).",
	}, {
		ID: "runtime-readiness", Title: "A container has no readiness probe", Severity: Warning,
		Check: checkEachContainer(checkReadiness),
		Why: "OLM treats a Deployment as available, and the ClusterServiceVersion as Succeeded, as soon as the " +
			"process runs. An upgrade " +
			"to a version that cannot start its work counts as a success, and webhooks get requests before they can " +
			"answer.",
		Fix: "Add a `readinessProbe` on `/readyz` that fails until caches are filled.",
	}, {
		ID: "runtime-leader-election", Title: "Several replicas do not agree on a leader", Severity: Error,
		Check: checkEachDeployment(checkLeaderElection),
		Why: "Two active replicas undo each other's changes, and create duplicate objects. If the " +
			"operator elects a leader but has no right to Leases, no replica ever starts to work.",
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
		Check: checkEachDeployment(checkHasPDB),
		Why: "A drain may evict all replicas at once, and with them the webhooks that they serve. Several replicas " +
			"are then no better than one.",
		Fix: "Add a PodDisruptionBudget with `maxUnavailable: 1` that selects the Pods; OLM installs it with the " +
			"bundle.",
	}, {
		ID: "runtime-priority-class", Title: "The operator's Pods have no priority class", Severity: Info,
		Check: checkEachDeployment(checkPriority),
		Why: "When a node runs out of resources, Pods without a priority are evicted first, and the operator's " +
			"resources are no longer reconciled.",
		Fix: "Set `priorityClassName`: `system-cluster-critical` if the cluster cannot work without the operator, " +
			"otherwise a class in the bundle.",
	}, newAccountRule(), newMissingObjectRule()}, listSecurityRules())
}

// newAccountRule returns the rule about service accounts of Deployments.
func newAccountRule() Rule {
	return Rule{
		ID: "runtime-service-account", Title: "A Deployment runs as a service account that does not exist",
		Severity: Error, Check: checkEachDeployment(checkAccount),
		Why: "OLM makes the service accounts that `permissions` and `clusterPermissions` name, and no others. The " +
			"Pods of a Deployment with another account are refused, and the installation never succeeds.",
		Fix: "List the account in `permissions`, with `rules: []` if it needs no rights; or run the Deployment as " +
			"another account.",
	}
}

// newMissingObjectRule returns the rule about missing ConfigMaps and Secrets.
func newMissingObjectRule() Rule {
	return Rule{
		ID: "runtime-missing-object", Title: "A Deployment needs a ConfigMap or a Secret that the bundle does not have",
		Severity: Warning, Check: checkMissing,
		Why: "A Pod does not start as long as a ConfigMap or a Secret of its volumes or variables is missing, and " +
			"the ClusterServiceVersion never succeeds. An object is not reported if another Deployment of the " +
			"bundle receives its name, or if OLM or OpenShift create it.",
		Fix: "Add the object to the bundle, set `optional: true`, or have the operator read it when it runs. Waive " +
			"this finding if another Deployment of the operator makes it, or if users make it before they install " +
			"the operator; then say so in the description.",
	}
}

// checkMissing reports ConfigMaps and Secrets that a Deployment needs and that the bundle does not have.
func checkMissing(in *Input) []Finding {
	var out []Finding
	for _, m := range in.Bundle.MissingObjects() {
		out = append(out, newObjectFinding(in.Bundle.CSVObject(),
			fmt.Sprintf("deployment %s needs %s %s, which the bundle does not have", m.Deployment, m.Kind, m.Name),
			slices.Concat(m.Deployments, m.Path)...))
	}
	return out
}

// listSecurityRules returns the rules about the security of the operator's Pods.
func listSecurityRules() []Rule {
	return []Rule{{
		ID: "runtime-run-as-root", Title: "A container may run as root", Severity: Warning,
		Check: checkEachContainer(checkRoot),
		Why: "A process that escapes from the container is root on the node. Namespaces that enforce the " +
			"restricted Pod " +
			"Security Standard refuse the Pod, so that the operator never starts there.",
		Fix: "Set `securityContext.runAsNonRoot: true` on the Pod, and give the image a numeric `USER`. Leave " +
			"`runAsUser` out: OpenShift chooses one.",
	}, {
		ID: "runtime-privilege-escalation", Title: "A container may gain privileges", Severity: Warning,
		Check: checkEachContainer(checkPrivileges),
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
		Check: checkEachContainer(checkCapabilities),
		Why: "The default set lets a container forge packets and change owners of files. An operator that only " +
			"uses the API server needs none. The restricted Pod Security Standard refuses the Pod.",
		Fix: "Set `securityContext.capabilities.drop: [ALL]` on every container; add NET_BIND_SERVICE at most.",
	}, {
		ID: "runtime-seccomp", Title: "A container has no seccomp profile", Severity: Warning,
		Check: checkEachContainer(checkSeccomp),
		Why: "Without a profile, the container can use every system call of the kernel. The restricted Pod " +
			"Security Standard " +
			"refuses the Pod.",
		Fix: "Set `securityContext.seccompProfile: {type: RuntimeDefault}` on the Pod.",
	}, {
		ID: "runtime-writable-root", Title: "A container can write to its own image", Severity: Info,
		Check: checkEachContainer(checkReadOnly),
		Why: "An attacker can store programs there, and files that the operator writes there use the node's disk " +
			"without a limit.",
		Fix: "Set `securityContext.readOnlyRootFilesystem: true`, and mount an `emptyDir` where the operator must " +
			"write.",
	}}
}

// deployment is a Deployment of the operator, and its place in the ClusterServiceVersion.
type deployment struct {
	operatorsv1alpha1.StrategyDeploymentSpec
	bundle *bundles.Bundle
	path   []any
}

// container is a container of the operator, and its place in the ClusterServiceVersion. init is true for
// init containers.
type container struct {
	corev1.Container
	bundle *bundles.Bundle
	pod    *corev1.PodSpec
	init   bool
	path   []any
}

// listDeployments returns the Deployments in the ClusterServiceVersion.
func listDeployments(b *bundles.Bundle) []deployment {
	var out []deployment
	for i, d := range b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		out = append(out, deployment{d, b, []any{"spec", "install", "spec", "deployments", i}})
	}
	return out
}

// countReplicas returns the number of replicas, which is 1 by default.
func (d deployment) countReplicas() int {
	if d.Spec.Replicas == nil {
		return 1
	}
	return int(*d.Spec.Replicas)
}

// listContainers returns the containers of a Deployment, init containers first.
func (d deployment) listContainers() []container {
	var out []container
	pod := &d.Spec.Template.Spec
	podPath := slices.Concat(d.path, []any{"spec", "template", "spec"})
	for i, c := range pod.InitContainers {
		out = append(out, container{Container: c, bundle: d.bundle, pod: pod, init: true,
			path: slices.Concat(podPath, []any{"initContainers", i})})
	}
	for i, c := range pod.Containers {
		out = append(out, container{Container: c, bundle: d.bundle, pod: pod,
			path: slices.Concat(podPath, []any{"containers", i})})
	}
	return out
}

// checkEachDeployment returns a check of the bundle that calls check for each Deployment. check returns a message and
// the path below the Deployment; an empty message means no finding.
func checkEachDeployment(check func(deployment) (string, []any)) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, d := range listDeployments(in.Bundle) {
			if message, path := check(d); message != "" {
				out = append(out, newObjectFinding(in.Bundle.CSVObject(),
					fmt.Sprintf("deployment %s %s", d.Name, message), slices.Concat(d.path, path)...))
			}
		}
		return out
	}
}

// checkEachContainer returns a check of the bundle that calls check for each container. check returns a message and the
// path below the container; an empty message means no finding.
func checkEachContainer(check func(container) (string, []any)) func(*Input) []Finding {
	return func(in *Input) []Finding {
		var out []Finding
		for _, d := range listDeployments(in.Bundle) {
			for _, c := range d.listContainers() {
				if message, path := check(c); message != "" {
					out = append(out, newObjectFinding(in.Bundle.CSVObject(),
						fmt.Sprintf("container %s of deployment %s %s", c.Name, d.Name, message),
						slices.Concat(c.path, path)...))
				}
			}
		}
		return out
	}
}

// checkRequest returns a check that reports a container without a request for a resource.
func checkRequest(resource corev1.ResourceName) func(container) (string, []any) {
	return func(c container) (string, []any) {
		// If only a limit is set, Kubernetes uses it as the request.
		if !c.Resources.Requests.Name(resource, "").IsZero() || !c.Resources.Limits.Name(resource, "").IsZero() {
			return "", nil
		}
		return fmt.Sprintf("requests no %s", resource), []any{"resources", "requests"}
	}
}

// checkLiveness reports a container without a liveness probe.
func checkLiveness(c container) (string, []any) {
	if c.init || c.LivenessProbe != nil {
		return "", nil
	}
	return "has no liveness probe", nil
}

// checkReadiness reports a container without a readiness probe.
func checkReadiness(c container) (string, []any) {
	if c.init || c.ReadinessProbe != nil {
		return "", nil
	}
	return "has no readiness probe", nil
}

// checkLeaderElection reports a Deployment with several replicas that do not, or cannot, elect a leader. Without a flag
// for leader election, a Deployment with a right to leases is assumed to elect a leader.
func checkLeaderElection(d deployment) (string, []any) {
	if d.countReplicas() < 2 {
		return "", nil
	}
	path := []any{"spec", "replicas"}
	election := readLeaderElection(d)
	switch {
	case election == electionOff:
		return fmt.Sprintf("has %d replicas, and leader election is off", d.countReplicas()), path
	case !canElect(d.bundle) && election == electionOn:
		return fmt.Sprintf("has %d replicas that elect a leader, and no right to leases", d.countReplicas()), path
	case !canElect(d.bundle) && !d.isWebhookOnly():
		return fmt.Sprintf("has %d replicas, and neither a flag for leader election nor a right to leases",
			d.countReplicas()), path
	}
	return "", nil
}

// isWebhookOnly reports whether the Deployment serves webhooks and the bundle has other Deployments, so that this
// Deployment probably is not the operator itself. All replicas of a webhook server may be active.
func (d deployment) isWebhookOnly() bool {
	return len(listDeployments(d.bundle)) > 1 && slices.ContainsFunc(d.bundle.CSV.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return w.DeploymentName == d.Name })
}

// electionState is whether leader election is on, as far as flags show. A program can also enable it in its code.
type electionState int

const (
	electionUnknown electionState = iota
	electionOn
	electionOff
)

// readLeaderElection returns the value of the first conventional flag for leader election (--leader-elect,
// --enable-leader-election, --leader-election and so on); electionUnknown if no container has such a flag.
func readLeaderElection(d deployment) electionState {
	for _, c := range d.listContainers() {
		for _, arg := range slices.Concat(c.Command, c.Args) {
			flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			// All spellings of the flag are converted to leader-elect.
			flag = strings.ReplaceAll(strings.TrimPrefix(flag, "enable-"), "election", "elect")
			if flag != "leader-elect" {
				continue
			}
			if hasValue && value != "true" {
				return electionOff
			}
			return electionOn
		}
	}
	return electionUnknown
}

// canElect reports whether the operator has the rights that leader election needs: to write leases or, for old
// versions of client-go, ConfigMaps.
func canElect(b *bundles.Bundle) bool {
	return slices.ContainsFunc(listGrants(b), func(g grant) bool {
		return hasPermission(g, permission{group: "coordination.k8s.io", resource: "leases", verb: "update"}) ||
			hasPermission(g, permission{group: "coordination.k8s.io", resource: "leases", verb: "patch"}) ||
			hasPermission(g, permission{resource: "configmaps", verb: "update"})
	})
}

// checkMetrics reports a bundle whose metrics cannot be collected: it has no PodMonitor, and no Service exposes the
// metrics of any Deployment.
func checkMetrics(in *Input) []Finding {
	all := listDeployments(in.Bundle)
	if len(all) == 0 || hasKind(in.Bundle, "PodMonitor") || slices.ContainsFunc(all, hasMetricsService) {
		return nil
	}
	for _, d := range all {
		if slices.ContainsFunc(d.listContainers(), func(c container) bool {
			return slices.ContainsFunc(c.Ports, isMetricsPort)
		}) {
			return []Finding{newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("deployment %s has a port for metrics, and no Service exposes it", d.Name), d.path...)}
		}
	}
	return []Finding{newObjectFinding(in.Bundle.CSVObject(),
		"no container has a port for metrics, and no Service exposes one", "spec", "install", "spec", "deployments")}
}

// isMetricsPort reports whether a container port is named as a port for metrics.
func isMetricsPort(p corev1.ContainerPort) bool { return strings.Contains(p.Name, "metrics") }

// hasKind reports whether the bundle has an object of a kind.
func hasKind(b *bundles.Bundle, kind string) bool {
	return slices.ContainsFunc(b.Objects, func(o *bundles.Object) bool { return o.GetKind() == kind })
}

// hasMetricsService reports whether a Service of the bundle exposes the Deployment's metrics. The Service must select
// the Deployment, and its name or one of its ports must be about metrics. If the bundle has a ServiceMonitor, any
// Service that selects the Deployment counts.
func hasMetricsService(d deployment) bool {
	return slices.ContainsFunc(d.bundle.Objects, func(o *bundles.Object) bool {
		var service corev1.Service
		if o.GetKind() != "Service" ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service) != nil ||
			len(service.Spec.Selector) == 0 || !isSubset(service.Spec.Selector, d.Spec.Template.Labels) {
			return false
		}
		return strings.Contains(service.Name, "metrics") || hasKind(d.bundle, "ServiceMonitor") ||
			slices.ContainsFunc(service.Spec.Ports,
				func(p corev1.ServicePort) bool { return isMetricsServicePort(d, p) })
	})
}

// isMetricsServicePort reports whether a port of a Service leads to a port for metrics of the Deployment.
func isMetricsServicePort(d deployment, p corev1.ServicePort) bool {
	if strings.Contains(p.Name+p.TargetPort.StrVal, "metrics") {
		return true
	}
	return slices.ContainsFunc(d.listContainers(), func(c container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool {
			return isMetricsPort(port) && port.ContainerPort == p.TargetPort.IntVal
		})
	})
}

// isSubset reports whether all contains every entry of part.
func isSubset(part, all map[string]string) bool {
	for k, v := range part {
		if have, ok := all[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// checkHasPDB reports a Deployment with several replicas and no PodDisruptionBudget.
func checkHasPDB(d deployment) (string, []any) {
	if d.countReplicas() < 2 || slices.ContainsFunc(d.bundle.Objects, func(o *bundles.Object) bool {
		var pdb policyv1.PodDisruptionBudget
		return o.GetKind() == "PodDisruptionBudget" &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &pdb) == nil &&
			matchesLabels(pdb.Spec.Selector, d.Spec.Template.Labels)
	}) {
		return "", nil
	}
	return fmt.Sprintf("has %d replicas, and no PodDisruptionBudget selects them", d.countReplicas()),
		[]any{"spec", "replicas"}
}

// checkAccount reports a Deployment whose service account OLM does not create and the bundle does not contain. The
// account "default" exists in every namespace.
func checkAccount(d deployment) (string, []any) {
	account := bundles.ReadServiceAccount(d.Spec.Template.Spec)
	if account == bundles.DefaultAccount || d.bundle.HasAccount(account) {
		return "", nil
	}
	return fmt.Sprintf("runs as service account %s, which no permissions name", account),
		[]any{"spec", "template", "spec"}
}

// checkPriority reports a Deployment without a priority class.
func checkPriority(d deployment) (string, []any) {
	if d.Spec.Template.Spec.PriorityClassName != "" {
		return "", nil
	}
	return "has no priority class", []any{"spec", "template", "spec"}
}

// checkRoot reports a container that runs, or can run, as root. Settings of the container override those of the Pod.
func checkRoot(c container) (string, []any) {
	pod, own := readPodSecurity(c), readContainerSecurity(c)
	user, nonRoot := pod.RunAsUser, pod.RunAsNonRoot
	if own.RunAsUser != nil {
		user = own.RunAsUser
	}
	if own.RunAsNonRoot != nil {
		nonRoot = own.RunAsNonRoot
	}
	isRefusedAsRoot := nonRoot != nil && *nonRoot // the kubelet does not start such a container as root
	hasOtherUser := nonRoot == nil && user != nil
	switch {
	case user != nil && *user == 0:
		return "runs as root", []any{"securityContext"}
	case isRefusedAsRoot || hasOtherUser:
		return "", nil
	}
	return "may run as root", []any{"securityContext"}
}

// checkPrivileges reports a container that is privileged or can gain privileges.
func checkPrivileges(c container) (string, []any) {
	own := readContainerSecurity(c)
	switch {
	case own.Privileged != nil && *own.Privileged:
		return "is privileged", []any{"securityContext", "privileged"}
	case own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation:
		return "may gain privileges", []any{"securityContext", "allowPrivilegeEscalation"}
	}
	return "", nil
}

// checkHostAccess reports Deployments whose Pods have access to the node.
func checkHostAccess(in *Input) []Finding {
	var out []Finding
	for _, d := range listDeployments(in.Bundle) {
		for _, access := range bundles.ListPodNodeAccess(d.Spec.Template.Spec) {
			out = append(out, newObjectFinding(in.Bundle.CSVObject(),
				fmt.Sprintf("deployment %s %s", d.Name, access.Description),
				slices.Concat(d.path, []any{"spec", "template", "spec"}, access.Path)...))
		}
	}
	return out
}

// checkCapabilities reports a container with the default capabilities, or with any except NET_BIND_SERVICE.
func checkCapabilities(c container) (string, []any) {
	own := readContainerSecurity(c)
	path := []any{"securityContext", "capabilities"}
	if own.Capabilities == nil || !slices.Contains(own.Capabilities.Drop, "ALL") {
		return "keeps the default capabilities", path
	}
	for _, added := range own.Capabilities.Add {
		if added != "NET_BIND_SERVICE" {
			return fmt.Sprintf("has the capability %s", added), path
		}
	}
	return "", nil
}

// checkSeccomp reports a container without a seccomp profile, or with the profile Unconfined.
func checkSeccomp(c container) (string, []any) {
	path := []any{"securityContext", "seccompProfile"}
	profile := cmp.Or(readContainerSecurity(c).SeccompProfile, readPodSecurity(c).SeccompProfile)
	switch {
	case profile == nil:
		return "has no seccomp profile", path
	case profile.Type == corev1.SeccompProfileTypeUnconfined:
		return "runs without seccomp", path
	}
	return "", nil
}

// checkReadOnly reports a container whose root file system is writable.
func checkReadOnly(c container) (string, []any) {
	if own := readContainerSecurity(c); own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem {
		return "", nil
	}
	return "can write to its root file system", []any{"securityContext", "readOnlyRootFilesystem"}
}

// readPodSecurity returns the security context of the container's Pod; never nil.
func readPodSecurity(c container) *corev1.PodSecurityContext {
	return cmp.Or(c.pod.SecurityContext, &corev1.PodSecurityContext{})
}

// readContainerSecurity returns the security context of the container; never nil.
func readContainerSecurity(c container) *corev1.SecurityContext {
	return cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
}
