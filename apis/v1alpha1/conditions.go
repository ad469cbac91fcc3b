// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready, Reconciling and Stalled have the meaning that kstatus gives them; Reconciling and Stalled
// are absent instead of False.
const (
	// ConditionReady is True if the object matches its spec.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the controller works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while a person must act. It is removed by itself once the problem in its message
	// is corrected.
	ConditionStalled = "Stalled"
	// ConditionReconcileFailing is True while the controller fails to reconcile the object; its transition time is
	// the time of the first failure. It is absent otherwise. The other conditions are then from the last
	// successful reconcile.
	ConditionReconcileFailing = "ReconcileFailing"

	// ConditionOnline (FleetCluster) is True while the agent renews its Lease.
	ConditionOnline = "Online"
	// ConditionAPIServerReachable (FleetCluster) is True while the agent reaches the API server of its own cluster.
	// While it is False, the agent's reports about the cluster are not current.
	ConditionAPIServerReachable = "APIServerReachable"
	// ConditionOLMAvailable (FleetCluster) is True when the agent found OLM.
	ConditionOLMAvailable = "OLMAvailable"
	// ConditionVersionSupported (FleetCluster) is True while the versions of agent and hub are at most one minor
	// version apart, and False otherwise. It is absent if one of them is not the version of a release.
	ConditionVersionSupported = "VersionSupported"

	// ConditionHibernating (FleetCluster) exists while the source of the cluster reports that its machines are
	// stopped, or are being stopped or started. It is True while the hub relies on that report. It is False with the
	// reason PowerUnknown once the hub does not rely on it.
	ConditionHibernating = "Hibernating"

	// ConditionBlockedVersionInUse (OperatorCatalog) exists, and is True, while clusters run a blocked version; its
	// message names the clusters and the versions that they can go to.
	ConditionBlockedVersionInUse = "BlockedVersionInUse"

	// ConditionVersionHeld (ManagedOperator) exists, and is True, while versions are held that were rolled back; its
	// message names the versions.
	ConditionVersionHeld = "VersionHeld"

	// ConditionOutsideAccess (ManagedOperator) exists, and is True, while the operator selects clusters, or runs
	// on clusters, on which no FleetAccess permits it; its message names the clusters. Installed operators are
	// not changed.
	ConditionOutsideAccess = "OutsideAccess"

	// ConditionPlanned (OperatorRollout) is True once the members of the waves are frozen.
	ConditionPlanned = "Planned"

	// ConditionFeasible (OperatorSLO) is True if every tier can alert on the objectives before their budgets
	// are spent.
	ConditionFeasible = "Feasible"
	// ConditionRulesLoaded (OperatorSLO) is True if Prometheus evaluates exactly the rules that were written,
	// without error.
	ConditionRulesLoaded = "RulesLoaded"

	// ConditionCatalogServed (OperatorInstall) is True if the agent serves the catalog view and OLM is connected
	// to it.
	ConditionCatalogServed = "CatalogServed"
	// ConditionResolved (OperatorInstall) is True if OLM resolved the Subscription to the next hop that was admitted.
	ConditionResolved = "Resolved"
	// ConditionPlanApproved (OperatorInstall) is True if the InstallPlan has exactly what was admitted and
	// was approved.
	ConditionPlanApproved = "PlanApproved"
	// ConditionInstalled (OperatorInstall) is True if the admitted CSV is Succeeded.
	ConditionInstalled = "Installed"

	// ConditionDrifted (OperatorInstall) is True while the installed objects differ from the admitted bundle with its
	// settings; its message names the differing fields. It is Unknown if they cannot be compared.
	ConditionDrifted = "Drifted"

	// ConditionStorageMigrated (OperatorInstall) is True if all custom resources of the operator are stored in the
	// storage version of their definitions. It exists only if spec.storageMigration is set. It has no generation,
	// because another controller than the install's sets it.
	ConditionStorageMigrated = "StorageMigrated"

	// ConditionSuccess (EndpointProbe) is True while the probe succeeds. It is Unknown until the first run.
	ConditionSuccess = "Success"

	// ConditionActive (AlertSilence) is True while the silence is active in Alertmanager.
	ConditionActive = "Active"
	// ConditionBudgetsExcluded (AlertSilence) is True while time in which operators are bad is excluded from their
	// error budgets. It exists only if the silence has excludeFromBudgets.
	ConditionBudgetsExcluded = "BudgetsExcluded"
)

// ConditionIsBadWhenTrue reports whether a condition of this type means, while it is True, that something is wrong or
// blocked. A condition of any other type, except for Reconciling, is good while it is True.
func ConditionIsBadWhenTrue(conditionType string) bool {
	switch conditionType {
	case ConditionStalled, ConditionReconcileFailing, ConditionHibernating, ConditionBlockedVersionInUse,
		ConditionVersionHeld, ConditionOutsideAccess, ConditionDrifted:
		return true
	default:
		return false
	}
}

// Condition reasons. For each reason, package remedy says what a person can do.
const (
	// ReasonSucceeded means that the object matches its spec.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing means that work continues and no error was found.
	ReasonProgressing = "Progressing"
	// ReasonWaiting means that something named in the message must come first.
	ReasonWaiting = "Waiting"
	// ReasonPaused means that a person paused the object.
	ReasonPaused = "Paused"
	// ReasonDeleting means that the object is being removed.
	ReasonDeleting = "Deleting"
	// ReasonRemovalUnconfirmed means that an operator is to be uninstalled from more clusters than are permitted
	// without a confirmation.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// ReasonUninstallFailed means that too many clusters cannot uninstall an operator, so that the uninstallation
	// does not begin on more clusters.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonReconcileError means that the controller could not reconcile the object because of the error in the
	// message, and tries again.
	ReasonReconcileError = "ReconcileError"

	// ReasonLeaseFresh, ReasonLeaseExpired and ReasonNeverJoined explain ConditionOnline.
	ReasonLeaseFresh   = "LeaseFresh"
	ReasonLeaseExpired = "LeaseExpired"
	ReasonNeverJoined  = "NeverJoined"
	// ReasonAccessRevoked means that the ServiceAccount of the agent's tokens was deleted.
	ReasonAccessRevoked = "AccessRevoked"
	// ReasonAgentOffline means that an agent does not renew its Lease.
	ReasonAgentOffline = "AgentOffline"
	// ReasonAPIServerReachable and ReasonAPIServerUnreachable explain ConditionAPIServerReachable.
	ReasonAPIServerReachable   = "APIServerReachable"
	ReasonAPIServerUnreachable = "APIServerUnreachable"
	// ReasonHibernating means that the machines of a cluster do not run, according to its source.
	ReasonHibernating = "Hibernating"
	// ReasonPowerUnknown means that the source of a cluster reports that its machines do not run, and that the hub
	// does not rely on this report.
	ReasonPowerUnknown = "PowerUnknown"
	// ReasonSourcePaused means that the owner of a cluster's source paused it, or moves it to another
	// management cluster.
	ReasonSourcePaused = "SourcePaused"
	// ReasonClusterPaused means that no operator is uninstalled from a cluster because the cluster, or its source,
	// is paused.
	ReasonClusterPaused = "ClusterPaused"
	// ReasonAgentTooOld and ReasonHubTooOld mean that agent and hub are more than one minor
	// version apart.
	ReasonAgentTooOld = "AgentTooOld"
	ReasonHubTooOld   = "HubTooOld"
	// ReasonOLMMissing means that the cluster does not serve OLM's API.
	ReasonOLMMissing = "OLMMissing"

	// ReasonCatalogUnreachable and the reasons up to ReasonCatalogInvalid explain what is wrong with a catalog.
	ReasonCatalogUnreachable = "CatalogUnreachable"
	// ReasonSourceNotFound means that the registry, or the file system, does not have the catalog.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonAccessDenied means that the registry refuses the credentials.
	ReasonAccessDenied = "AccessDenied"
	// ReasonCatalogReadInterrupted means that a process was killed while it read the digest, which is not read again
	// by itself.
	ReasonCatalogReadInterrupted = "CatalogReadInterrupted"
	// ReasonCatalogTooLarge means that the catalog exceeds the size limit for catalogs.
	ReasonCatalogTooLarge = "CatalogTooLarge"
	// ReasonSignatureMissing means that the catalog is not signed although it must be.
	ReasonSignatureMissing = "SignatureMissing"
	// ReasonSignatureInvalid means that the catalog is not signed by any of the trusted keys.
	ReasonSignatureInvalid = "SignatureInvalid"
	// ReasonWouldStrand means that the catalog has no upgrade path from a version that clusters run to the head of
	// its channel.
	ReasonWouldStrand = "WouldStrand"
	// ReasonVersionBlocked means that a version is blocked; no cluster is upgraded to it.
	ReasonVersionBlocked  = "VersionBlocked"
	ReasonDigestMismatch  = "DigestMismatch"
	ReasonNotACatalog     = "NotACatalog"
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogInvalid means that the catalog was read and contradicts itself.
	ReasonCatalogInvalid = "CatalogInvalid"

	// ReasonUnknownPackage, ReasonUnknownChannel and ReasonUnknownVersion mean that the catalog does not have the
	// package, channel or version in the spec.
	ReasonUnknownPackage = "UnknownPackage"
	ReasonUnknownChannel = "UnknownChannel"
	ReasonUnknownVersion = "UnknownVersion"
	// ReasonNoUpgradePath means that the channel has no upgrade path from the installed version to the target.
	ReasonNoUpgradePath = "NoUpgradePath"
	// ReasonBundleTooLarge means that a bundle can neither be inlined nor be unpacked by OLM.
	ReasonBundleTooLarge = "BundleTooLarge"

	// ReasonNoClusters means that the cluster selector matches no cluster.
	ReasonNoClusters = "NoClusters"
	// ReasonClustersNotReady means that clusters that run the wanted release were Ready and are not Ready now.
	ReasonClustersNotReady = "ClustersNotReady"
	// ReasonNamespaceConflict means that a namespace is already used: by another ManagedOperator on the same
	// clusters, or on the hub by an object that does not belong to the FleetCluster.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonInvalidSpec means that the API server accepted the spec and it still cannot be used; the message names
	// the field to change.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonOperatorNotFound means that there is no ManagedOperator with that name.
	ReasonOperatorNotFound = "OperatorNotFound"
	// ReasonDuplicate means that another object is about the same operator and is used.
	ReasonDuplicate = "Duplicate"
	// ReasonInfeasible means that an objective cannot work; the message has the cause.
	ReasonInfeasible = "Infeasible"
	// ReasonRetentionTooShort means that Prometheus deletes samples before a budget's period is over.
	ReasonRetentionTooShort = "RetentionTooShort"
	// ReasonProfileInvalid means that the SLO property of the operator's bundle cannot be used and is ignored.
	ReasonProfileInvalid = "ProfileInvalid"
	// ReasonNoPrometheus means that the hub has no address of a Prometheus. This reason and the reasons up to
	// ReasonRulesFailing explain ConditionRulesLoaded.
	ReasonNoPrometheus = "NoPrometheus"
	// ReasonPrometheusUnreachable means that Prometheus could not be queried.
	ReasonPrometheusUnreachable = "PrometheusUnreachable"
	// ReasonRulesMissing means that Prometheus does not have the rules.
	ReasonRulesMissing = "RulesMissing"
	// ReasonRulesOutdated means that Prometheus has other rules than the rules that were written last.
	ReasonRulesOutdated = "RulesOutdated"
	// ReasonRulesFailing means that Prometheus cannot evaluate a rule.
	ReasonRulesFailing = "RulesFailing"

	// ReasonPending means that a rollout is not planned yet.
	ReasonPending = "Pending"
	// ReasonHalted means that a rollout stopped admission because of failures.
	ReasonHalted = "Halted"
	// ReasonAborted means that a person aborted the rollout.
	ReasonAborted = "Aborted"
	// ReasonSuperseded means that a newer rollout took over.
	ReasonSuperseded = "Superseded"
	// ReasonGated means that a gate has not been passed.
	ReasonGated = "Gated"
	// ReasonSoaking means that a wave is being observed.
	ReasonSoaking = "Soaking"
	// ReasonNotObserved means that no cluster of a wave was observed to run the release: all of them left, or failed
	// as maxFailures permits. A person must decide.
	ReasonNotObserved = "NotObserved"
	// ReasonVerifying means that a wave waits for the verdict of gates.
	ReasonVerifying = "Verifying"
	// ReasonGateFailed means that a rollout stopped admission because a gate failed.
	ReasonGateFailed = "GateFailed"
	// ReasonTooManyDeferred means that more clusters are offline than allowed.
	ReasonTooManyDeferred = "TooManyDeferred"
	// ReasonPolicyNotMet means that a rollout admits no cluster, because it does not meet the requirements of
	// a RolloutPolicy.
	ReasonPolicyNotMet = "PolicyNotMet"
	// ReasonWindowClosed means that ChangeWindows are closed. This reason and the reasons up to
	// ReasonErrorBudgetUnknown explain why clusters are not admitted now.
	ReasonWindowClosed = "WindowClosed"
	// ReasonClusterBusy means that another operator of the cluster is being changed.
	ReasonClusterBusy = "ClusterBusy"
	// ReasonClusterNotWritable means that the hub's API server refuses to write the cluster's OperatorInstall.
	ReasonClusterNotWritable = "ClusterNotWritable"
	// ReasonDependencyNotMet means that another operator must be Ready first.
	ReasonDependencyNotMet = "DependencyNotMet"
	// ReasonVetoed means that the owner of the cluster refuses changes on it.
	ReasonVetoed = "Vetoed"
	// ReasonFrozen means that a FleetFreeze stops all changes on the cluster.
	ReasonFrozen = "Frozen"
	// ReasonAccessNotPermitted means that no FleetAccess permits the release on the cluster.
	ReasonAccessNotPermitted = "AccessNotPermitted"
	// ReasonLocalPolicy means that the policy that the owner of the cluster wrote on it does not permit the release.
	ReasonLocalPolicy = "LocalPolicy"
	// ReasonLocalPolicyInvalid means that this policy cannot be read, so no operator is installed or changed.
	ReasonLocalPolicyInvalid = "LocalPolicyInvalid"
	// ReasonPreflightFailed means that the release cannot be installed on the cluster.
	ReasonPreflightFailed = "PreflightFailed"
	// ReasonPreflightPending means that it is not known yet whether the release can be
	// installed on the cluster.
	ReasonPreflightPending = "PreflightPending"
	// ReasonErrorBudgetSpent means that clusters are not admitted because no error budget of the operator remains.
	ReasonErrorBudgetSpent = "ErrorBudgetSpent"
	// ReasonErrorBudgetUnknown means that clusters are not admitted because the error
	// budgets of the operator are not known.
	ReasonErrorBudgetUnknown = "ErrorBudgetUnknown"
	// ReasonFailed means that a rollout, or a cluster in it, failed.
	ReasonFailed = "Failed"

	// ReasonRolledBack means that a rollout was ended, and that its clusters are rolled back to their
	// previous release.
	ReasonRolledBack = "RolledBack"
	// ReasonRollingBack means that clusters are being rolled back to the release that they ran before a rollout.
	ReasonRollingBack = "RollingBack"
	// ReasonVersionHeld means that the wanted version is held for the operator, because the version, or the wanted
	// settings at this version, were rolled back.
	ReasonVersionHeld = "VersionHeld"
	// ReasonRollbackNeedsBackup means that a rollback would lose data of custom resources for which there is
	// no backup.
	ReasonRollbackNeedsBackup = "RollbackNeedsBackup"
	// ReasonRollbackImpossible means that the older version cannot use the objects of the newer version.
	ReasonRollbackImpossible = "RollbackImpossible"

	// ReasonNotAdmitted means that no rollout has admitted the install yet.
	ReasonNotAdmitted = "NotAdmitted"
	// ReasonRecovered means that the hub found the operator on clusters where it did not install it, and that a
	// person must resume it.
	ReasonRecovered = "Recovered"
	// ReasonReportPending means that the hub does not have the agent's report about what the cluster runs yet.
	ReasonReportPending = "ReportPending"
	// ReasonStaleAdmission means that the admission is older than an admission that the agent has already acted on.
	ReasonStaleAdmission = "StaleAdmission"
	// ReasonNamespaceTerminating means that the operator's namespace is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonOperatorGroupConflict means that the namespace has an unsuitable OperatorGroup, or more than one.
	ReasonOperatorGroupConflict = "OperatorGroupConflict"
	// ReasonOrphanCSV means that a CSV without a Subscription blocks OLM.
	ReasonOrphanCSV = "OrphanCSV"
	// ReasonSubscriptionConflict means that a Subscription of another owner subscribes to the same package in
	// the namespace.
	ReasonSubscriptionConflict = "SubscriptionConflict"
	// ReasonInstalledElsewhere means that the operator already runs for all namespaces from another namespace.
	ReasonInstalledElsewhere = "InstalledElsewhere"
	// ReasonNotAdoptable means that an operator that others installed cannot be adopted as it is.
	ReasonNotAdoptable = "NotAdoptable"
	// ReasonAdoptionPending means that the operator will be adopted soon, and that OLM is still changing it.
	ReasonAdoptionPending = "AdoptionPending"
	// ReasonRestoring means that an adopted operator is being given back.
	ReasonRestoring = "Restoring"
	// ReasonCatalogNotReady means that OLM has not connected to the view.
	ReasonCatalogNotReady = "CatalogNotReady"
	// ReasonViewUnreachable means that OLM tries to connect to the view, and that no connection reaches the view.
	ReasonViewUnreachable = "ViewUnreachable"
	// ReasonResolutionFailed means that OLM could not resolve the Subscription.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonUnadmittedPlan means that an InstallPlan has a CSV that was not admitted, or other content than the
	// catalog view. It is not approved.
	ReasonUnadmittedPlan = "UnadmittedPlan"
	// ReasonPlanFailed means that the InstallPlan failed; the message names the step.
	ReasonPlanFailed = "PlanFailed"
	// ReasonUnpackFailed means that OLM could not unpack the bundle's image.
	ReasonUnpackFailed = "UnpackFailed"
	// ReasonRequirementsNotMet means that the CSV waits for an object that the cluster does not have; the message
	// names it.
	ReasonRequirementsNotMet = "RequirementsNotMet"
	// ReasonObjectsLost means that service accounts, permissions or CustomResourceDefinitions of the operator were
	// deleted. The message names them. OLM creates them again only when it installs the operator again.
	ReasonObjectsLost = "ObjectsLost"
	// ReasonCSVFailed means that the CSV is Failed.
	ReasonCSVFailed = "CSVFailed"
	// ReasonInSync means that the installed objects match the admitted bundle with its settings.
	ReasonInSync = "InSync"
	// ReasonDrifted means that the objects that OLM installed were changed.
	ReasonDrifted = "Drifted"
	// ReasonCorrecting means that the agent corrects the changed objects.
	ReasonCorrecting = "Correcting"
	// ReasonCorrectionStopped means that the agent has stopped to correct fields, because a user or a program keeps
	// changing them.
	ReasonCorrectionStopped = "CorrectionStopped"
	// ReasonNotCompared means that the installed objects cannot be compared with the bundle.
	ReasonNotCompared = "NotCompared"
	// ReasonScaledToZero means that a Deployment of the operator is scaled to zero replicas, and the bundle has more.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonPodsUnavailable means that pods of the operator are not available.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonNotUpgradeable means that the operator itself prevents its upgrade.
	ReasonNotUpgradeable = "NotUpgradeable"
	// ReasonTemplateInvalid means that a user's template does not render to an object of the required kind and name.
	ReasonTemplateInvalid = "TemplateInvalid"
	// ReasonForbidden means that the agent lacks a permission.
	ReasonForbidden = "Forbidden"
	// ReasonUninstalling means that the operator is being removed.
	ReasonUninstalling = "Uninstalling"

	// ReasonTooManyTargets means that a probe's selector matches more objects than are probed.
	ReasonTooManyTargets = "TooManyTargets"
	// ReasonBackupPending means that an upgrade waits for a backup of the operator's
	// custom resources.
	ReasonBackupPending = "BackupPending"
	// ReasonBackupForbidden means that the agent lacks the permission to read the custom resources of a backup.
	ReasonBackupForbidden = "BackupForbidden"
	// ReasonBackupStoreUnavailable means that a backup could not be written to its store, or could not be read
	// from it.
	ReasonBackupStoreUnavailable = "BackupStoreUnavailable"
	// ReasonBackupTooLarge means that a backup exceeds its maximum size in the store.
	ReasonBackupTooLarge = "BackupTooLarge"
	// ReasonBackupDamaged means that the data that was read back differs from the data that was written.
	ReasonBackupDamaged = "BackupDamaged"
	// ReasonBackupFailed means that a backup could not be taken for another cause, which the message names.
	ReasonBackupFailed = "BackupFailed"

	// ReasonStorageMigrationForbidden means that the agent lacks the permission to write custom resources again, or
	// to write status.storedVersions of their definition.
	ReasonStorageMigrationForbidden = "StorageMigrationForbidden"
	// ReasonStorageMigrationFailed means that custom resources could not be written again.
	ReasonStorageMigrationFailed = "StorageMigrationFailed"

	// ReasonTargetNotFound means that the object that the probe names does not exist, or publishes no such host or
	// port, or that a selector matches too few objects. This reason and the reasons below explain why a probe fails.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonDNSFailed means that the target's name could not be looked up.
	ReasonDNSFailed = "DNSFailed"
	// ReasonAddressRefused means that the target, or a redirect, has an address that only spec.allowPrivate permits.
	ReasonAddressRefused = "AddressRefused"
	// ReasonConnectFailed means that no connection was made.
	ReasonConnectFailed = "ConnectFailed"
	// ReasonTLSFailed means that the TLS handshake failed, or that the certificate is not trusted.
	ReasonTLSFailed = "TLSFailed"
	// ReasonTimedOut means that no complete answer arrived within the timeout.
	ReasonTimedOut = "TimedOut"
	// ReasonTooManyRedirects means that more than ten redirects followed.
	ReasonTooManyRedirects = "TooManyRedirects"
	// ReasonBadStatus means that the answer's status does not count as success.
	ReasonBadStatus = "BadStatus"
	// ReasonBadAnswer means that the answer does not match what is expected.
	ReasonBadAnswer = "BadAnswer"
	// ReasonAnswerTooLarge means that the answer is larger than 512 KiB, or larger than the expressions of the
	// probe permit.
	ReasonAnswerTooLarge = "AnswerTooLarge"
	// ReasonTooSlow means that a probe succeeded, but took longer than spec.maxDuration.
	ReasonTooSlow = "TooSlow"
	// ReasonSecretUnavailable means that a Secret of a probe or of a PagingPolicy is missing, lacks a key or the
	// label, cannot be read, or has unusable content.
	ReasonSecretUnavailable = "SecretUnavailable"
	// ReasonPolicyConflict means that another PagingPolicy selects the same operators, or also has the scope Fleet.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonNoFleetPolicy means that no PagingPolicy has the scope Fleet, so that
	// nothing is written for Alertmanager.
	ReasonNoFleetPolicy = "NoFleetPolicy"
	// ReasonConfigurationInvalid means that Alertmanager would not accept the configuration from all PagingPolicies,
	// or that an alert would have no receiver.
	ReasonConfigurationInvalid = "ConfigurationInvalid"
	// ReasonInForce means that a silence is active.
	ReasonInForce = "InForce"
	// ReasonScheduled means that a silence begins later.
	ReasonScheduled = "Scheduled"
	// ReasonEnded means that the time of a silence is over.
	ReasonEnded = "Ended"
	// ReasonExcluding means that a silence excludes time from error budgets.
	ReasonExcluding = "Excluding"
	// ReasonEndTooLate means that a silence would last longer than the hub permits.
	ReasonEndTooLate = "EndTooLate"
	// ReasonNoAlertmanager means that the hub has no address of an Alertmanager.
	ReasonNoAlertmanager = "NoAlertmanager"
	// ReasonAlertmanagerUnreachable means that Alertmanager could not be read or written.
	ReasonAlertmanagerUnreachable = "AlertmanagerUnreachable"
	// ReasonIncidentUnresolved means that PagerDuty did not accept the resolution of an incident that a silence would
	// hide. The silence waits for it.
	ReasonIncidentUnresolved = "IncidentUnresolved"
	// ReasonWebhookCAUnavailable means that a probe reads its CA from webhooks, and no webhook with a caBundle calls
	// the target.
	ReasonWebhookCAUnavailable = "WebhookCAUnavailable"
	// ReasonNotServing means that a gRPC server reports that it does not serve.
	ReasonNotServing = "NotServing"
	// ReasonProtocolError means that the answer does not follow the protocol, or
	// that the connection broke.
	ReasonProtocolError = "ProtocolError"
)

// Labels and annotations.
const (
	// LabelCluster names the FleetCluster that an object belongs to.
	LabelCluster = "bellwether.dev/cluster"
	// LabelOperator and LabelOperatorNamespace name the ManagedOperator that
	// an object belongs to.
	LabelOperator          = "bellwether.dev/operator"
	LabelOperatorNamespace = "bellwether.dev/operator-namespace"
	// LabelProbeSecret marks a Secret that EndpointProbes of its namespace may use,
	// with the value "true".
	LabelProbeSecret = "bellwether.dev/probe-secret" //nolint:gosec // the name of a label
	// LabelPagingSecret marks a Secret that PagingPolicies of its namespace may use,
	// with the value "true".
	LabelPagingSecret = "bellwether.dev/paging-secret" //nolint:gosec // the name of a label
	// LabelPaging marks objects on the hub that have configuration of Alertmanager, with the value "true".
	LabelPaging = "bellwether.dev/paging"
	// LabelPagingHub names the hub that wrote such an object and deletes it: its value is the namespace of the
	// hub's configuration.
	LabelPagingHub = "bellwether.dev/paging-hub"
	// LabelAutomaticSilence marks an AlertSilence that the hub creates and deletes by itself. Its value is the cause:
	// upgrade, veto or removal.
	LabelAutomaticSilence = "bellwether.dev/automatic-silence"
	// LabelRollout and LabelWave are the frozen membership of an OperatorInstall: its OperatorRollout and its wave.
	LabelRollout = "bellwether.dev/rollout"
	LabelWave    = "bellwether.dev/wave"
	// LabelManaged marks objects that an agent created on a fleet cluster.
	LabelManaged = "bellwether.dev/managed"

	// LabelAggregateToBackup marks a ClusterRole on a fleet cluster whose rules the
	// agent gets for backups and restores, with the value "true".
	LabelAggregateToBackup = "bellwether.dev/aggregate-to-agent-backup"

	// LabelAggregateToMigration marks a ClusterRole on a fleet cluster whose rules the agent gets for storage
	// migrations, with the value "true".
	LabelAggregateToMigration = "bellwether.dev/aggregate-to-agent-migration"

	// LabelRules marks objects on the hub that have rules for Prometheus. Its value is "true". In a ConfigMap, the
	// keys of rule files end with .rules.yaml.
	LabelRules = "bellwether.dev/rules"

	// LabelHostedCluster marks a Secret with the access of a hosted agent, which runs outside the cluster that it
	// serves. Its value is the cluster's name.
	LabelHostedCluster = "bellwether.dev/hosted-cluster"
	// HostedHubKey and HostedClusterKey are the keys of such a Secret with the kubeconfigs for the hub (as
	// this cluster's agent) and for the cluster. HostedPortsKey has the range of ports of its catalog views,
	// such as 50100-50129.
	HostedHubKey     = "hub"
	HostedClusterKey = "cluster"
	HostedPortsKey   = "viewPorts"

	// LabelLeftBehind marks the ConfigMaps on the hub that list the operators that remained on a cluster when it left
	// the fleet. Its value is the cluster's name.
	LabelLeftBehind = "bellwether.dev/left-behind"
	// LabelClusterUID distinguishes, on such a ConfigMap, FleetClusters with the same name.
	LabelClusterUID = "bellwether.dev/cluster-uid"

	// AnnotationSpecHash has the SHA-256 of the rendered template of an object on a fleet cluster.
	AnnotationSpecHash = "bellwether.dev/spec-hash"
	// AnnotationRevision holds, on an InstallPlan, the revision of the admission
	// for which it was approved.
	AnnotationRevision = "bellwether.dev/revision"
	// AnnotationKept has, on an operator's Subscription, the record of the operator for a hub that has lost its
	// objects: JSON, with its ManagedOperator and a KeptAdmission.
	AnnotationKept = "bellwether.dev/kept"
	// AnnotationAdopted has, on an adopted Subscription, its state before the adoption as JSON: when it was adopted,
	// for which ManagedOperator, and its spec and labels.
	AnnotationAdopted = "bellwether.dev/adopted"
	// AnnotationAgentVersion, AnnotationKubernetesVersion and AnnotationOLMVersion are set by the agent on its Lease.
	// An empty OLM version means that OLM is missing.
	AnnotationAgentVersion      = "bellwether.dev/agent-version"
	AnnotationKubernetesVersion = "bellwether.dev/kubernetes-version"
	AnnotationOLMVersion        = "bellwether.dev/olm-version"
	// AnnotationAgentAccount is set by the agent on its Lease: the UID of the ServiceAccount whose token it uses;
	// empty if it uses other credentials.
	AnnotationAgentAccount = "bellwether.dev/agent-account"
	// AnnotationAPIServerUnreachableSince is set by the agent on its Lease: the time (RFC 3339, by the agent's clock)
	// of the first failed check of its own cluster's API server; empty if the check for the Lease's last renewal
	// succeeded. If it is missing, no check was made yet.
	AnnotationAPIServerUnreachableSince = "bellwether.dev/api-server-unreachable-since"
	// AnnotationVeto is set by the agent on its Lease: the veto of its cluster's owner as JSON; empty if there
	// is none.
	AnnotationVeto = "bellwether.dev/veto"
	// AnnotationAPIServerError is the error of that first failed check.
	AnnotationAPIServerError = "bellwether.dev/api-server-error"

	// AnnotationTimeZone is set by people on a FleetCluster: the IANA name of its
	// time zone, for ChangeWindows with the time zone Cluster.
	AnnotationTimeZone = "bellwether.dev/time-zone"

	// AnnotationDiscovered is "true" on a FleetCluster that was created by discovery and is deleted with its source.
	AnnotationDiscovered = "bellwether.dev/discovered"

	// LabelDiscover with the value "false", on the object that a FleetCluster would be discovered from, excludes the
	// cluster from the fleet.
	LabelDiscover = "bellwether.dev/discover"

	// FinalizerAgent is held by the agent on an OperatorInstall until the removal policy is carried out.
	FinalizerAgent = "bellwether.dev/agent"
	// FinalizerHub is held by the hub on a FleetCluster and a ManagedOperator until their objects on fleet clusters
	// are released or removed.
	FinalizerHub = "bellwether.dev/hub"

	// LeaseName is the name of the agent's Lease in the cluster's namespace.
	LeaseName = "bellwether-agent"
	// ScanName is the name of the OperatorScan in the cluster's namespace.
	ScanName = "bellwether-agent"
	// HubLeaseName is the name of the Lease for the leader election of the hub's replicas, in the hub's namespace.
	HubLeaseName = "bellwether-hub"
	// AgentServiceAccount is the name of the agent's ServiceAccount, Role and
	// RoleBinding in the cluster's namespace on the hub.
	AgentServiceAccount = "bellwether-agent"
	// VetoConfigMap is the name of the ConfigMap in the agent's namespace on its cluster by which the cluster's owner
	// refuses changes.
	VetoConfigMap = "bellwether-veto"
)
