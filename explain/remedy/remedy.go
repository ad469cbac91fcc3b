// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remedy says, for every condition reason of the API, what it means and
// what a person can do. `bellwether why` and the reference of reasons are both
// made from this one table. It reads nothing and knows no objects.
package remedy

import (
	"fmt"
	"strings"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Remedy is what to know of one reason.
type Remedy struct {
	Reason string
	// Means says in one sentence what the state is.
	Means string
	// Do lists what a person can do, the likeliest first. Empty: nothing, it
	// passes by itself. CLUSTER, OPERATOR and ROLLOUT stand for names.
	Do []string
}

// For returns the remedy for a reason.
func For(reason string) (Remedy, bool) {
	for _, r := range All() {
		if r.Reason == reason {
			return r, true
		}
	}
	return Remedy{}, false
}

// All returns every remedy, in the order of the API's reasons.
func All() []Remedy {
	var all []Remedy
	for _, group := range [][]Remedy{general(), fleet(), catalog(), operator(), objectives(), rollout(), cluster(),
		olm(), probe()} {
		all = append(all, group...)
	}
	return all
}

// Markdown is the reference of reasons.
func Markdown() string {
	var out strings.Builder
	out.WriteString("# Condition reasons\n\nWhat each reason on a Bellwether object means, and what to do. " +
		"`bellwether why CLUSTER OPERATOR` prints the entry that applies.\n")
	for _, r := range All() {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", r.Reason, r.Means)
		if len(r.Do) > 0 {
			out.WriteByte('\n')
		}
		for _, do := range r.Do {
			fmt.Fprintf(&out, "- %s\n", do)
		}
	}
	return out.String()
}

func general() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonSucceeded, "All is as the spec asks.", nil},
		{v1alpha1.ReasonProgressing, "Work goes on and nothing is wrong.", nil},
		{v1alpha1.ReasonWaiting, "Something that the message names must come first.", []string{
			"Read the message; if what it names never comes, look at that object's conditions."}},
		{v1alpha1.ReasonPaused, "A person paused it.", []string{
			"Continue with `bellwether rollout resume ROLLOUT`, or set spec.paused to false."}},
		{v1alpha1.ReasonDeleting, "It is being removed.", []string{
			"If it takes long, the message names the clusters that are waited for: bring their agents back, or set " +
				"the removal policy to Orphan."}},
	}
}

func fleet() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonLeaseFresh, "The agent renews its Lease.", nil},
		{v1alpha1.ReasonLeaseExpired,
			"The agent has stopped renewing its Lease: it is down, or it cannot reach the hub.", []string{
				"On the cluster, look at the agent: kubectl -n bellwether-system get pods, then its logs.",
				"Check that the cluster can reach the hub's API server; renew its credentials with `bellwether fleet " +
					"join CLUSTER --cluster-kubeconfig FILE`."}},
		{v1alpha1.ReasonNeverJoined, "No agent has ever reported for this cluster.", []string{
			"Install the agent with `bellwether fleet join CLUSTER --cluster-kubeconfig FILE`."}},
		{v1alpha1.ReasonAgentOffline, "The agent of the cluster does not report, so nothing is changed there.",
			[]string{
				"On the cluster, look at the agent: kubectl -n bellwether-system get pods, then its logs.",
				"Nothing else is needed: the cluster catches up by itself once its agent is back."}},
		{v1alpha1.ReasonAPIServerReachable, "The agent reaches the API server of its own cluster.", nil},
		{v1alpha1.ReasonAPIServerUnreachable, "The agent runs but cannot reach the API server of its own cluster.", []string{
			"Check the cluster's control plane; nothing that is shown about this cluster is current until it answers.",
			"Nothing else is needed: the agent reports again as soon as the API server answers."}},
		{v1alpha1.ReasonOLMMissing, "The cluster does not serve OLM's API.", []string{
			"Install the Operator Lifecycle Manager (v0) on the cluster; the agent notices by itself."}},
	}
}

func catalog() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonCatalogUnreachable, "The catalog's registry or directory cannot be read.", []string{
			"Check the reference in the OperatorCatalog, the network and the registry: `bellwether catalog show REF`.",
			"A registry on plain HTTP needs spec.source.insecure: true."}},
		{v1alpha1.ReasonSourceNotFound, "The registry or the file system has no such catalog.", []string{
			"Compare the reference in the OperatorCatalog with what was published: `bellwether catalog show REF`.",
			"Publish it with `bellwether catalog publish DIR REF`; it is noticed by itself.",
			"If only one cluster says so, it reads another registry or mirror than the hub, or the catalog was " +
				"deleted since."}},
		{v1alpha1.ReasonAccessDenied, "The registry wants other credentials.", []string{
			"Give the hub, or the agent that says so, a pull secret for the registry, and check that it may read " +
				"this repository."}},
		{v1alpha1.ReasonCatalogTooLarge, "The catalog or one of its files is larger than what is read of one.",
			[]string{
				"Publish bundles by image instead of inline, or fewer versions."}},
		{v1alpha1.ReasonSignatureMissing,
			"The OperatorCatalog asks for a signature (spec.verification), and the catalog has none.", []string{
				"Sign it: `bellwether catalog publish DIR REF --key FILE`. It is noticed by itself; what was in use " +
					"before stays.",
				"If only one cluster says so, it reads a mirror that does not copy signatures (OCI referrers)."}},
		{v1alpha1.ReasonSignatureInvalid,
			"The catalog has signatures, and none is by a key of spec.verification.publicKeys.", []string{
				"Compare keys: `bellwether catalog verify REF --key PUB`. Sign it with the right key, or add its " +
					"public key to the OperatorCatalog.",
				"If nobody of yours signed it, find out who can push there before anything else."}},
		{v1alpha1.ReasonWouldStrand,
			"The new catalog leaves a version that clusters run without a way to the head of its channel; the one " +
				"before stays in use.", []string{
				"Publish a catalog in which the named versions lead on to the head (`bellwether catalog diff OLD NEW` " +
					"shows for each version what would change).",
				"If a version is to have no way on, block it: `bellwether catalog block`, or spec.blocks of the " +
					"OperatorCatalog."}},
		{v1alpha1.ReasonVersionBlocked, "The version is blocked: nobody is brought to it or through it.", []string{
			"Go where the message says; the OperatorCatalog's status.blockedVersions lists who runs it and a " +
				"proposal for each.",
			"If nothing newer is good, publish a corrected version; it is taken up by itself where spec.version is " +
				"not set.",
			"If the block is wrong, lift it where it was made: spec.blocks of the OperatorCatalog, or `bellwether " +
				"catalog unblock` and publish."}},
		{v1alpha1.ReasonDigestMismatch, "What was read does not have the digest it should have.", []string{
			"Publish the catalog again with `bellwether catalog push`, and use the digest that it prints.",
			"If nobody republished it, suspect the registry or a proxy in between."}},
		{v1alpha1.ReasonNotACatalog, "What was read is no file-based catalog.", []string{
			"Check the reference: it must be a catalog image with /configs, not a bundle or an operator image.",
			"Publish one with `bellwether catalog push DIR REF`."}},
		{v1alpha1.ReasonCatalogNotFound, "The OperatorCatalog that the operator names does not exist.", []string{
			"Create it in the operator's namespace, or correct spec.catalog.name; see `bellwether catalog list`."}},
		{v1alpha1.ReasonCatalogInvalid, "The catalog was read and contradicts itself.", []string{
			"Correct what the message names and publish it again; the last good digest stays in use until then."}},
	}
}

func operator() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonUnknownPackage, "The catalog has no such package.", []string{
			"Correct spec.package, or publish a catalog that has it; see `bellwether catalog show REF`."}},
		{v1alpha1.ReasonUnknownChannel, "The package has no such channel.", []string{
			"Correct spec.channel; `bellwether catalog show REF PACKAGE` lists the channels."}},
		{v1alpha1.ReasonUnknownVersion, "The channel does not offer this version.", []string{
			"Correct spec.version, or publish a catalog that offers it; `bellwether catalog show REF PACKAGE` lists " +
				"the versions."}},
		{v1alpha1.ReasonNoUpgradePath,
			"The channel's upgrade graph does not lead from the installed version to the target.", []string{
				"Choose a version that can be reached, or go by way of one in between: `bellwether rollout plan " +
					"OPERATOR --version X`.",
				"Or publish a catalog whose entry replaces, skips or covers by skipRange the installed version. Going " +
					"back is not an upgrade."}},
		{v1alpha1.ReasonBundleTooLarge,
			"The bundle is too large to be inlined, and has no image that OLM could unpack.", []string{
				"Publish the bundle as an image (`bellwether bundle push`) and name it in the catalog."}},
		{v1alpha1.ReasonNoClusters, "The cluster selector matches nothing.", []string{
			"Compare spec.clusterSelector with the labels that `bellwether fleet list -o wide` shows."}},
		{v1alpha1.ReasonNamespaceConflict,
			"The namespace is taken: by an older ManagedOperator on some of the clusters, or on the hub by something " +
				"that was not made for the FleetCluster.", []string{
				"Give this ManagedOperator another spec.install.namespace, or keep the two apart by their cluster " +
					"selectors.",
				"For a FleetCluster: delete the namespace that is in the way, or give the cluster another name."}},
		{v1alpha1.ReasonInvalidSpec, "The spec is well formed and still cannot be used.", []string{
			"Change the field that the message names."}},
	}
}

func objectives() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonOperatorNotFound, "The objectives name a ManagedOperator that is not in their namespace.",
			[]string{
				"Correct the name: delete this OperatorSLO and create one with the right spec.operator.",
				"Or create the ManagedOperator; the objectives take effect by themselves then."}},
		{v1alpha1.ReasonDuplicate,
			"Another object is about the same operator, and is the one that counts; the message names it.", []string{
				"Delete one of the two; what is written in both belongs into one."}},
		{v1alpha1.ReasonInfeasible,
			"An objective cannot work: its budget is gone before any alert can fire, or a tier can never fire.",
			[]string{
				"Lower the target, or make the period longer, as the message says; `bellwether slo simulate --target " +
					"PERCENT` shows how alerts behave."}},
		{v1alpha1.ReasonProfileInvalid,
			"The property `bellwether.dev/slo` of the operator's bundle cannot be used. It is left out; the " +
				"OperatorSLO and the default profile count.", []string{
				"Tell the operator's author what the message says; `bellwether bundle lint` finds it before a " +
					"version is published.",
				"Until then write what is missing into the OperatorSLO."}},
		{v1alpha1.ReasonNoPrometheus,
			"The hub does not know a Prometheus, so nobody asks whether the rules are evaluated. The rules are " +
				"written all the same.", []string{
				"Start the hub with --prometheus-url (hub.slo.prometheusURL of the chart)."}},
		{v1alpha1.ReasonPrometheusUnreachable, "The hub could not ask Prometheus which rules it evaluates.", []string{
			"Check the address in the message, and that the hub's pods may reach it.",
			"If it asks for a login, give the hub --prometheus-token-file and --prometheus-ca-file."}},
		{v1alpha1.ReasonRulesMissing,
			"Prometheus does not have the rules of these objectives: nothing is recorded, and no alert fires.",
			[]string{
				"With prometheus-operator: compare the ruleSelector and ruleNamespaceSelector of your Prometheus with " +
					"the labels and the namespace of the PrometheusRule; hub.slo.rulesLabels and " +
					"hub.slo.rulesNamespace of the chart set them.",
				"Without it: load the files of the ConfigMap bellwether-slo (label bellwether.dev/rules) into " +
					"Prometheus, and reload it.",
				"Prometheus's own log says if it refused a file."}},
		{v1alpha1.ReasonRulesOutdated, "Prometheus evaluates other rules than those that were written last.", []string{
			"A moment after a change that is normal; else see whether Prometheus, or what copies the files, reloads.",
			"If it has the rules twice, remove the copy that the hub does not write."}},
		{v1alpha1.ReasonRulesFailing,
			"Prometheus has the rules and cannot evaluate one of them; the message has its error.", []string{
				"Many-to-many errors come from series that are exported twice: look at the series that the rule reads.",
				"The rules need Prometheus 3."}},
	}
}

func rollout() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonPending, "The rollout has not been planned yet.", []string{
			"It is planned within seconds; if not, check that the hub runs."}},
		{v1alpha1.ReasonHalted, "Admission stopped because a wave has more failures than it may have.", []string{
			"Ask why for each failed cluster: `bellwether why CLUSTER OPERATOR`. The rollout goes on by itself once " +
				"they are put right.",
			"Or end it with `bellwether rollout abort ROLLOUT --reason …`, or set another version."}},
		{v1alpha1.ReasonAborted, "The rollout was ended; what was admitted finishes.", []string{
			"Change the ManagedOperator to start another rollout."}},
		{v1alpha1.ReasonSuperseded, "A newer rollout took over.",
			[]string{"Follow the newest: `bellwether rollout get OPERATOR`."}},
		{v1alpha1.ReasonGated, "A gate has not been passed.", []string{
			"Approve it with `bellwether rollout approve ROLLOUT --reason …`; that needs the verb approve on " +
				"operatorrollouts."}},
		{v1alpha1.ReasonSoaking, "The wave is updated and is being observed.", nil},
		{v1alpha1.ReasonTooManyDeferred, "More clusters of the wave are offline or paused than maxDeferred allows.",
			[]string{
				"Bring their agents back (`bellwether fleet list`), or raise strategy.maxDeferred for the next rollout."}},
		{v1alpha1.ReasonFailed, "It failed.", []string{"Ask why: `bellwether why CLUSTER OPERATOR`."}},
	}
}

func cluster() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonNotAdmitted, "No rollout has admitted this cluster yet.", []string{
			"See what the rollout waits for: `bellwether rollout get OPERATOR`."}},
		{v1alpha1.ReasonStaleAdmission,
			"The admission is older than one that the agent has already acted on; it is not carried out.", []string{
				"Nothing, if a newer rollout runs. After the hub was restored from a backup: change the " +
					"ManagedOperator so that a new rollout starts."}},
		{v1alpha1.ReasonNamespaceTerminating, "The operator's namespace on the cluster is being deleted.", []string{
			"Find what holds it: kubectl get namespace NAME -o yaml shows the finalizers and what remains. It is " +
				"made again once it is gone."}},
		{v1alpha1.ReasonOperatorGroupConflict,
			"The namespace has an OperatorGroup that does not fit, or more than one.", []string{
				"Keep exactly one OperatorGroup in the namespace, with the target namespaces of the install mode; or " +
					"install into a namespace of its own."}},
		{v1alpha1.ReasonOrphanCSV,
			"A ClusterServiceVersion that no Subscription refers to blocks OLM in the namespace.", []string{
				"If nobody needs it, delete it on the cluster: kubectl -n NAMESPACE delete csv NAME. CRDs and their " +
					"objects stay."}},
		{v1alpha1.ReasonSubscriptionConflict,
			"A Subscription that Bellwether did not make subscribes to the same package.", []string{
				"Delete the other Subscription on the cluster (its CSV stays), or install into another namespace."}},
		{v1alpha1.ReasonInstalledElsewhere,
			"The operator already runs for all namespaces from another namespace of the cluster.", []string{
				"Remove it there, or set spec.install.namespace to that namespace to take it over."}},
	}
}

func olm() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonCatalogNotReady, "OLM has not connected to the catalog view that the agent serves.", []string{
			"Check that OLM's catalog operator can reach the agent's pod on the view ports (network policies)."}},
		{v1alpha1.ReasonResolutionFailed, "OLM could not resolve the Subscription.", []string{
			"Read OLM's message: a dependency may be missing, or another operator in the namespace may be in the way."}},
		{v1alpha1.ReasonUnadmittedPlan,
			"OLM proposes a plan with a ClusterServiceVersion that nobody admitted; it is not approved.", []string{
				"Find what else subscribes in the namespace; keep one operator per namespace."}},
		{v1alpha1.ReasonPlanFailed, "OLM's InstallPlan failed at the step that the message names.", []string{
			"Put right what the step names, for instance existing objects that a new CRD schema refuses; the agent " +
				"retries with a back-off."}},
		{v1alpha1.ReasonCSVFailed,
			"The ClusterServiceVersion failed: most often the operator's Deployment does not become available.",
			[]string{
				"Look at the operator's pods: `bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE` shows the " +
					"last reason.",
				"If the release is bad, stop it: `bellwether rollout abort ROLLOUT --reason …`, and publish a " +
					"corrected version."}},
		{v1alpha1.ReasonUnpackFailed, "OLM could not unpack the bundle's image.", []string{
			"Check that the cluster can pull the image that the message names, and that its pull secrets are in " +
				"OLM's reach; the agent retries with a back-off."}},
		{v1alpha1.ReasonRequirementsNotMet,
			"The ClusterServiceVersion waits for something that the cluster does not have: an API, a CRD or a " +
				"permission.", []string{
				"Provide what the message names; `bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE` lists " +
					"every requirement."}},
		{v1alpha1.ReasonInSync, "What runs is the admitted bundle as configured.", nil},
		{v1alpha1.ReasonDrifted, "Somebody changed what OLM installed; the message names the fields that differ.", []string{
			"Undo the change on the cluster, or set spec.install.drift to Correct to have the agent undo it.",
			"If the change is wanted, put it into spec.install.config or into the bundle."}},
		{v1alpha1.ReasonScaledToZero, "A Deployment of the operator is scaled to zero replicas; the bundle asks for more.",
			[]string{"Scale it up again on the cluster: kubectl -n NAMESPACE scale deployment NAME --replicas=N.",
				"If the operator is to stop on this cluster, take the cluster out of spec.clusterSelector instead."}},
		{v1alpha1.ReasonPodsUnavailable, "Not all pods of the operator are available.", []string{
			"Look at the pods: `bellwether why CLUSTER OPERATOR --cluster-kubeconfig FILE` shows the reason of the last failure."}},
		{v1alpha1.ReasonNotUpgradeable,
			"The operator itself holds its upgrade (OperatorCondition Upgradeable is False).", []string{
				"Do what the operator's own message asks; the upgrade goes on by itself."}},
		{v1alpha1.ReasonTemplateInvalid, "A template of an object on the cluster does not render to what it is for.",
			[]string{
				"Correct the template in the agent's values (agent.templates) and upgrade the agent."}},
		{v1alpha1.ReasonForbidden, "The agent lacks a permission on the cluster.", []string{
			"Upgrade the agent's chart, which brings its roles, or grant what the message names."}},
		{v1alpha1.ReasonUninstalling, "The operator is being removed from the cluster.", nil},
	}
}

func probe() []Remedy {
	return []Remedy{
		{v1alpha1.ReasonTargetNotFound,
			"The object that an EndpointProbe names is not there, or has no such host or port.", []string{
				"Bring the object back, or correct spec.target. Until then the probe counts as failed."}},
		{v1alpha1.ReasonDNSFailed, "The name of a probe's target could not be looked up.", []string{
			"Look the name up from the place that probes: the agent's pod, or the hub's."}},
		{v1alpha1.ReasonAddressRefused,
			"A probe's target, or a redirect of it, led to a loopback, link-local or metadata address.", []string{
				"If that is what you want to probe, set spec.allowPrivate; if not, find out who redirects there."}},
		{v1alpha1.ReasonConnectFailed, "A probe could not connect.", []string{
			"Check that something listens on the port, and that network policies let the agent's pod in."}},
		{v1alpha1.ReasonTLSFailed, "A probe could not agree on TLS, or does not trust the certificate.", []string{
			"Renew the certificate, or give its CA in spec.tls.ca, or the name in it in spec.tls.serverName."}},
		{v1alpha1.ReasonTimedOut, "A probe had no whole answer in time.", []string{
			"Look at the endpoint's load; if it is slow by nature, raise spec.timeout."}},
		{v1alpha1.ReasonTooManyRedirects, "A probe was redirected more than ten times.", []string{
			"Mend the redirect loop, or set spec.http.followRedirects to false and list the redirect's status in " +
				"spec.http.statuses."}},
		{v1alpha1.ReasonBadStatus, "A probe got a status that is not one of the good ones.", []string{
			"Look at the endpoint's log; if the status is a good answer, list it in spec.http.statuses."}},
		{v1alpha1.ReasonBadAnswer, "A probe got an answer that does not match what is expected.", []string{
			"Compare the answer with the regular expressions in the spec."}},
		{v1alpha1.ReasonAnswerTooLarge, "A probe got an answer of more than 512 KiB.", []string{
			"Probe a smaller page, such as a health endpoint, or use the method HEAD."}},
		{v1alpha1.ReasonNotServing, "A gRPC server answered a probe that it does not serve.", []string{
			"Look at the server's log; check that it knows the service in spec.grpc.service."}},
		{v1alpha1.ReasonProtocolError,
			"A probe got an answer that does not follow the protocol, or the connection broke.", []string{
				"Check that the scheme is the one that the port speaks."}},
	}
}
