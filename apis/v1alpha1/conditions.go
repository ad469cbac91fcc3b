// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Ready, Reconciling and Stalled have the meaning that
// kstatus gives them; Reconciling and Stalled are absent where they are false.
const (
	// ConditionReady is True when the object is as its spec asks.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work towards the spec goes on.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will move until a person acts. It
	// is withdrawn by itself once what it names is put right.
	ConditionStalled = "Stalled"
	// ConditionReconcileFailing is True while the controller fails to reconcile the
	// object; its transition time says since when. It is absent otherwise. The
	// other conditions are then those of the last successful reconcile.
	ConditionReconcileFailing = "ReconcileFailing"

	// ConditionOnline (FleetCluster) is True while the agent renews its Lease.
	ConditionOnline = "Online"
	// ConditionAPIServerReachable (FleetCluster) is True while the agent reaches
	// the API server of its own cluster. Nothing that the agent reports about the
	// cluster is current while it is False.
	ConditionAPIServerReachable = "APIServerReachable"
	// ConditionOLMAvailable (FleetCluster) is True when the agent found OLM.
	ConditionOLMAvailable = "OLMAvailable"
	// ConditionVersionSupported (FleetCluster) is True while the versions of agent and
	// hub are at most one minor version apart, and False while they are further apart.
	// It is absent where one of them is not the version of a release.
	ConditionVersionSupported = "VersionSupported"

	// ConditionHibernating (FleetCluster) is there while the source of the cluster says
	// that its machines are stopped, or are being stopped or started. It is True while
	// the hub believes that, and False once it does not: the reason is PowerUnknown.
	ConditionHibernating = "Hibernating"

	// ConditionBlockedVersionInUse (OperatorCatalog) is there, and True, while
	// clusters run a version that is blocked; its message names them and says
	// where they can go.
	ConditionBlockedVersionInUse = "BlockedVersionInUse"

	// ConditionVersionHeld (ManagedOperator) is there, and True, while versions are
	// held that were rolled back; its message names them.
	ConditionVersionHeld = "VersionHeld"

	// ConditionOutsideAccess (ManagedOperator) is there, and True, while the operator
	// selects clusters, or runs on clusters, on which no FleetAccess permits it; its
	// message names them. What runs is left alone.
	ConditionOutsideAccess = "OutsideAccess"

	// ConditionPlanned (OperatorRollout) is True once membership is frozen.
	ConditionPlanned = "Planned"

	// ConditionFeasible (OperatorSLO) is True when every tier can alert on the
	// objectives before their budgets are gone.
	ConditionFeasible = "Feasible"
	// ConditionRulesLoaded (OperatorSLO) is True when Prometheus evaluates exactly
	// the rules that were written, without error.
	ConditionRulesLoaded = "RulesLoaded"

	// ConditionCatalogServed (OperatorInstall) is True when the agent serves
	// the catalog view and OLM is connected to it.
	ConditionCatalogServed = "CatalogServed"
	// ConditionResolved (OperatorInstall) is True when OLM resolved the
	// Subscription to the next hop that was admitted.
	ConditionResolved = "Resolved"
	// ConditionPlanApproved (OperatorInstall) is True when the InstallPlan
	// holds exactly what was admitted and was approved.
	ConditionPlanApproved = "PlanApproved"
	// ConditionInstalled (OperatorInstall) is True when the admitted CSV is
	// Succeeded.
	ConditionInstalled = "Installed"

	// ConditionDrifted (OperatorInstall) is True while what runs differs from the
	// admitted bundle as configured; its message names the differing fields. It is
	// Unknown where that cannot be compared.
	ConditionDrifted = "Drifted"

	// ConditionStorageMigrated (OperatorInstall) is True when all custom resources of
	// the operator are stored in the storage version of their definitions. It is there
	// only where the agent is asked for that. It names no generation, since another
	// controller than that of the install sets it.
	ConditionStorageMigrated = "StorageMigrated"

	// ConditionSuccess (EndpointProbe) is True while the probe succeeds. It is
	// Unknown until it first ran.
	ConditionSuccess = "Success"

	// ConditionActive (AlertSilence) is True while Alertmanager has the silence in force.
	ConditionActive = "Active"
	// ConditionBudgetsExcluded (AlertSilence) is True while time in which operators are bad
	// is excluded from their error budgets. It is there only if the silence says so.
	ConditionBudgetsExcluded = "BudgetsExcluded"
)

// ConditionIsBadWhenTrue tells whether a condition of this type says while it is True that something is wrong or held
// up. A condition of any other type but Reconciling is as it should be while it is True.
func ConditionIsBadWhenTrue(conditionType string) bool {
	switch conditionType {
	case ConditionStalled, ConditionReconcileFailing, ConditionHibernating, ConditionBlockedVersionInUse,
		ConditionVersionHeld, ConditionOutsideAccess, ConditionDrifted:
		return true
	default:
		return false
	}
}

// Condition reasons. Each is a state that a person can act on.
const (
	// ReasonSucceeded says that all is as asked.
	ReasonSucceeded = "Succeeded"
	// ReasonProgressing says that work goes on and nothing is wrong.
	ReasonProgressing = "Progressing"
	// ReasonWaiting says that something named in the message must come first.
	ReasonWaiting = "Waiting"
	// ReasonPaused says that a person paused the object.
	ReasonPaused = "Paused"
	// ReasonDeleting says that the object is being removed.
	ReasonDeleting = "Deleting"
	// ReasonRemovalUnconfirmed says that an operator is to be uninstalled from more
	// clusters than without a confirmation.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// ReasonUninstallFailed says that too many clusters cannot uninstall an operator
	// for others to be begun.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonReconcileError says that the controller could not reconcile the object
	// because of the error in the message, and tries again.
	ReasonReconcileError = "ReconcileError"

	// ReasonLeaseFresh and the two below explain ConditionOnline.
	ReasonLeaseFresh   = "LeaseFresh"
	ReasonLeaseExpired = "LeaseExpired"
	ReasonNeverJoined  = "NeverJoined"
	// ReasonAccessRevoked says that the ServiceAccount of the agent's tokens was deleted.
	ReasonAccessRevoked = "AccessRevoked"
	// ReasonAgentOffline says that an agent does not renew its Lease.
	ReasonAgentOffline = "AgentOffline"
	// ReasonAPIServerReachable and ReasonAPIServerUnreachable explain
	// ConditionAPIServerReachable.
	ReasonAPIServerReachable   = "APIServerReachable"
	ReasonAPIServerUnreachable = "APIServerUnreachable"
	// ReasonHibernating says that the machines of a cluster do not run, by its source.
	ReasonHibernating = "Hibernating"
	// ReasonPowerUnknown says that the source of a cluster says that its machines do not
	// run, and that the hub does not believe that any more.
	ReasonPowerUnknown = "PowerUnknown"
	// ReasonSourcePaused says that the owner of a cluster's source paused it, or moves it
	// to another management cluster.
	ReasonSourcePaused = "SourcePaused"
	// ReasonClusterPaused says that nothing is uninstalled from a cluster because it, or its source, is paused.
	ReasonClusterPaused = "ClusterPaused"
	// ReasonAgentTooOld and ReasonHubTooOld say that agent and hub are more than one minor
	// version apart.
	ReasonAgentTooOld = "AgentTooOld"
	ReasonHubTooOld   = "HubTooOld"
	// ReasonOLMMissing says that the cluster does not serve OLM's API.
	ReasonOLMMissing = "OLMMissing"

	// ReasonCatalogUnreachable and those below explain what is wrong with a
	// catalog.
	ReasonCatalogUnreachable = "CatalogUnreachable"
	// ReasonSourceNotFound says that the registry, or the file system, has no
	// such catalog.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonAccessDenied says that the registry wants other credentials.
	ReasonAccessDenied = "AccessDenied"
	// ReasonCatalogReadInterrupted says that a process was killed while it read the digest, which is not read again by
	// itself.
	ReasonCatalogReadInterrupted = "CatalogReadInterrupted"
	// ReasonCatalogTooLarge says that the catalog exceeds what is read of one.
	ReasonCatalogTooLarge = "CatalogTooLarge"
	// ReasonSignatureMissing says that the catalog is not signed, though it must
	// be.
	ReasonSignatureMissing = "SignatureMissing"
	// ReasonSignatureInvalid says that the catalog is signed by none of the keys
	// that are trusted.
	ReasonSignatureInvalid = "SignatureInvalid"
	// ReasonWouldStrand says that the catalog leaves a version that clusters run
	// without a way to the head of its channel.
	ReasonWouldStrand = "WouldStrand"
	// ReasonVersionBlocked says that a version is blocked; nobody is brought to
	// it.
	ReasonVersionBlocked  = "VersionBlocked"
	ReasonDigestMismatch  = "DigestMismatch"
	ReasonNotACatalog     = "NotACatalog"
	ReasonCatalogNotFound = "CatalogNotFound"
	// ReasonCatalogInvalid says that the catalog was read and contradicts
	// itself.
	ReasonCatalogInvalid = "CatalogInvalid"

	// ReasonUnknownPackage and the two below say that the catalog does not
	// hold what was asked for.
	ReasonUnknownPackage = "UnknownPackage"
	ReasonUnknownChannel = "UnknownChannel"
	ReasonUnknownVersion = "UnknownVersion"
	// ReasonNoUpgradePath says that the channel has no edge from the installed
	// version towards the target.
	ReasonNoUpgradePath = "NoUpgradePath"
	// ReasonBundleTooLarge says that a bundle can neither be inlined nor
	// unpacked by OLM.
	ReasonBundleTooLarge = "BundleTooLarge"

	// ReasonNoClusters says that the cluster selector matches nothing.
	ReasonNoClusters = "NoClusters"
	// ReasonClustersNotReady says that clusters that run the wanted release are no
	// longer Ready.
	ReasonClustersNotReady = "ClustersNotReady"
	// ReasonNamespaceConflict says that a namespace is taken: by another
	// ManagedOperator on the same clusters, or on the hub by something that was
	// not made for the FleetCluster.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonInvalidSpec says that the spec passed admission and is still not
	// usable; the message says which field to change.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonOperatorNotFound says that there is no ManagedOperator of that name.
	ReasonOperatorNotFound = "OperatorNotFound"
	// ReasonDuplicate says that another object is about the same operator, and is
	// the one that counts.
	ReasonDuplicate = "Duplicate"
	// ReasonInfeasible says that an objective cannot work; the message says why.
	ReasonInfeasible = "Infeasible"
	// ReasonRetentionTooShort says that Prometheus deletes samples before a budget's
	// period is over.
	ReasonRetentionTooShort = "RetentionTooShort"
	// ReasonProfileInvalid says that what the operator's bundle says of its SLOs
	// cannot be used, and is left out.
	ReasonProfileInvalid = "ProfileInvalid"
	// ReasonNoPrometheus and those below explain ConditionRulesLoaded.
	// ReasonNoPrometheus says that the hub knows no Prometheus to ask.
	ReasonNoPrometheus = "NoPrometheus"
	// ReasonPrometheusUnreachable says that Prometheus could not be asked.
	ReasonPrometheusUnreachable = "PrometheusUnreachable"
	// ReasonRulesMissing says that Prometheus does not have the rules.
	ReasonRulesMissing = "RulesMissing"
	// ReasonRulesOutdated says that Prometheus has other rules than those that
	// were written last.
	ReasonRulesOutdated = "RulesOutdated"
	// ReasonRulesFailing says that Prometheus cannot evaluate a rule.
	ReasonRulesFailing = "RulesFailing"

	// ReasonPending says that a rollout was not planned yet.
	ReasonPending = "Pending"
	// ReasonHalted says that a rollout stopped admission because of failures.
	ReasonHalted = "Halted"
	// ReasonAborted says that a person aborted the rollout.
	ReasonAborted = "Aborted"
	// ReasonSuperseded says that a newer rollout took over.
	ReasonSuperseded = "Superseded"
	// ReasonGated says that a gate has not been passed.
	ReasonGated = "Gated"
	// ReasonSoaking says that a wave is being observed.
	ReasonSoaking = "Soaking"
	// ReasonNotObserved says that no cluster of a wave was observed to run the release:
	// all of them left, or failed as maxFailures permits. A person has to decide.
	ReasonNotObserved = "NotObserved"
	// ReasonVerifying says that a wave waits for the verdict of gates.
	ReasonVerifying = "Verifying"
	// ReasonGateFailed says that a rollout stopped admission because a gate failed.
	ReasonGateFailed = "GateFailed"
	// ReasonTooManyDeferred says that more clusters are offline than allowed.
	ReasonTooManyDeferred = "TooManyDeferred"
	// ReasonPolicyNotMet says that a rollout admits nothing, because it cannot meet
	// what a RolloutPolicy asks for.
	ReasonPolicyNotMet = "PolicyNotMet"
	// ReasonWindowClosed and those below say why clusters are not admitted now.
	// ReasonWindowClosed says that ChangeWindows are closed.
	ReasonWindowClosed = "WindowClosed"
	// ReasonClusterBusy says that another operator of the cluster is being changed.
	ReasonClusterBusy = "ClusterBusy"
	// ReasonClusterNotWritable says that the hub's API server refuses to write the
	// cluster's OperatorInstall.
	ReasonClusterNotWritable = "ClusterNotWritable"
	// ReasonDependencyNotMet says that another operator has to be Ready first.
	ReasonDependencyNotMet = "DependencyNotMet"
	// ReasonVetoed says that the owner of the cluster refuses changes there.
	ReasonVetoed = "Vetoed"
	// ReasonFrozen says that a FleetFreeze stops everything on the cluster.
	ReasonFrozen = "Frozen"
	// ReasonAccessNotPermitted says that no FleetAccess permits the release on the
	// cluster.
	ReasonAccessNotPermitted = "AccessNotPermitted"
	// ReasonLocalPolicy says that the policy which the owner of the cluster wrote there
	// does not permit the release.
	ReasonLocalPolicy = "LocalPolicy"
	// ReasonLocalPolicyInvalid says that this policy cannot be read, so nothing is
	// installed or changed.
	ReasonLocalPolicyInvalid = "LocalPolicyInvalid"
	// ReasonPreflightFailed says that the release cannot be installed on the cluster.
	ReasonPreflightFailed = "PreflightFailed"
	// ReasonPreflightPending says that it is not known yet whether the release can be
	// installed on the cluster.
	ReasonPreflightPending = "PreflightPending"
	// ReasonErrorBudgetSpent says that clusters are not admitted because no error
	// budget of the operator is left.
	ReasonErrorBudgetSpent = "ErrorBudgetSpent"
	// ReasonErrorBudgetUnknown says that clusters are not admitted because the error
	// budgets of the operator are not known.
	ReasonErrorBudgetUnknown = "ErrorBudgetUnknown"
	// ReasonFailed says that a rollout, or a cluster in it, failed.
	ReasonFailed = "Failed"

	// ReasonRolledBack says that a rollout was ended, and that its clusters are
	// taken back to what they ran before.
	ReasonRolledBack = "RolledBack"
	// ReasonRollingBack says that clusters are taken back to what they ran before a
	// rollout.
	ReasonRollingBack = "RollingBack"
	// ReasonVersionHeld says that the wanted version was rolled back, or the wanted
	// settings were rolled back at this version, and is held for the operator.
	ReasonVersionHeld = "VersionHeld"
	// ReasonRollbackNeedsBackup says that going back would lose data of custom
	// resources, for which there is no backup.
	ReasonRollbackNeedsBackup = "RollbackNeedsBackup"
	// ReasonRollbackImpossible says that the older version cannot take over what
	// the newer one left.
	ReasonRollbackImpossible = "RollbackImpossible"

	// ReasonNotAdmitted says that no rollout has admitted the install yet.
	ReasonNotAdmitted = "NotAdmitted"
	// ReasonRecovered says that the hub found the operator on clusters where it did not
	// install it, and that a person has to resume it.
	ReasonRecovered = "Recovered"
	// ReasonReportPending says that it is not known yet what the cluster runs, because its
	// agent has not reported that.
	ReasonReportPending = "ReportPending"
	// ReasonStaleAdmission says that the admission stamp is older than one the
	// agent has already acted on.
	ReasonStaleAdmission = "StaleAdmission"
	// ReasonNamespaceTerminating says that the operator's namespace is going.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonOperatorGroupConflict says that the namespace has an unfit
	// OperatorGroup, or more than one.
	ReasonOperatorGroupConflict = "OperatorGroupConflict"
	// ReasonOrphanCSV says that a CSV without a Subscription blocks OLM.
	ReasonOrphanCSV = "OrphanCSV"
	// ReasonSubscriptionConflict says that a foreign Subscription subscribes to
	// the same package in the namespace.
	ReasonSubscriptionConflict = "SubscriptionConflict"
	// ReasonInstalledElsewhere says that the operator already runs for all
	// namespaces from another one.
	ReasonInstalledElsewhere = "InstalledElsewhere"
	// ReasonNotAdoptable says that the operator that somebody else installed cannot be
	// adopted as it is.
	ReasonNotAdoptable = "NotAdoptable"
	// ReasonAdoptionPending says that the operator is about to be adopted, and OLM is at
	// work.
	ReasonAdoptionPending = "AdoptionPending"
	// ReasonRestoring says that what was adopted is being given back.
	ReasonRestoring = "Restoring"
	// ReasonCatalogNotReady says that OLM has not connected to the view.
	ReasonCatalogNotReady = "CatalogNotReady"
	// ReasonViewUnreachable says that OLM tries to connect to the view, and that no
	// connection arrives there.
	ReasonViewUnreachable = "ViewUnreachable"
	// ReasonResolutionFailed says that OLM could not resolve.
	ReasonResolutionFailed = "ResolutionFailed"
	// ReasonUnadmittedPlan says that an InstallPlan holds a CSV that nobody
	// admitted, or another content than the catalog view; it is not approved.
	ReasonUnadmittedPlan = "UnadmittedPlan"
	// ReasonPlanFailed says that the InstallPlan failed; the message names the
	// step.
	ReasonPlanFailed = "PlanFailed"
	// ReasonUnpackFailed says that OLM could not unpack the bundle's image.
	ReasonUnpackFailed = "UnpackFailed"
	// ReasonRequirementsNotMet says that the CSV waits for something that the
	// cluster does not have; the message names it.
	ReasonRequirementsNotMet = "RequirementsNotMet"
	// ReasonObjectsLost says that somebody deleted accounts, permissions or
	// CustomResourceDefinitions that came with the operator. The message names
	// them; OLM makes them again only when it installs the operator again.
	ReasonObjectsLost = "ObjectsLost"
	// ReasonCSVFailed says that the CSV is Failed.
	ReasonCSVFailed = "CSVFailed"
	// ReasonInSync says that what runs is the admitted bundle as configured.
	ReasonInSync = "InSync"
	// ReasonDrifted says that somebody changed what OLM installed.
	ReasonDrifted = "Drifted"
	// ReasonCorrecting says that the agent puts back what somebody changed.
	ReasonCorrecting = "Correcting"
	// ReasonCorrectionStopped says that the agent does not put back any more what
	// somebody, or some program, keeps changing.
	ReasonCorrectionStopped = "CorrectionStopped"
	// ReasonNotCompared says that what runs cannot be compared with the bundle.
	ReasonNotCompared = "NotCompared"
	// ReasonScaledToZero says that a Deployment of the operator is scaled to zero
	// replicas, where the bundle asks for more.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonPodsUnavailable says that pods of the operator are not available.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonNotUpgradeable says that the operator itself holds the upgrade.
	ReasonNotUpgradeable = "NotUpgradeable"
	// ReasonTemplateInvalid says that a user's template does not render to the
	// object it is for.
	ReasonTemplateInvalid = "TemplateInvalid"
	// ReasonForbidden says that the agent lacks a permission.
	ReasonForbidden = "Forbidden"
	// ReasonUninstalling says that the operator is being removed.
	ReasonUninstalling = "Uninstalling"

	// ReasonTooManyTargets says that a probe's selector matches more objects than
	// are probed.
	ReasonTooManyTargets = "TooManyTargets"
	// ReasonBackupPending says that an upgrade waits for a backup of the operator's
	// custom resources.
	ReasonBackupPending = "BackupPending"
	// ReasonBackupForbidden says that the agent may not read the custom resources
	// that it has to save.
	ReasonBackupForbidden = "BackupForbidden"
	// ReasonBackupStoreUnavailable says that a backup could not be written to its
	// store, or not be read from it.
	ReasonBackupStoreUnavailable = "BackupStoreUnavailable"
	// ReasonBackupTooLarge says that a backup takes more of the store than it may.
	ReasonBackupTooLarge = "BackupTooLarge"
	// ReasonBackupDamaged says that what was read back is not what was written.
	ReasonBackupDamaged = "BackupDamaged"
	// ReasonBackupFailed says that a backup could not be taken for another cause,
	// which the message names.
	ReasonBackupFailed = "BackupFailed"

	// ReasonStorageMigrationForbidden says that the agent may not store custom
	// resources anew, or not write status.storedVersions of their definition.
	ReasonStorageMigrationForbidden = "StorageMigrationForbidden"
	// ReasonStorageMigrationFailed says that custom resources could not be stored
	// anew.
	ReasonStorageMigrationFailed = "StorageMigrationFailed"

	// ReasonTargetNotFound and those below explain why a probe fails.
	// ReasonTargetNotFound says that the object that the probe names is not
	// there, or publishes no such host or port, or that a selector matches too few
	// objects.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonDNSFailed says that the target's name could not be looked up.
	ReasonDNSFailed = "DNSFailed"
	// ReasonAddressRefused says that the target, or a redirect, led to an
	// address that spec.allowPrivate would have to permit.
	ReasonAddressRefused = "AddressRefused"
	// ReasonConnectFailed says that no connection was made.
	ReasonConnectFailed = "ConnectFailed"
	// ReasonTLSFailed says that TLS could not be agreed on, or that the
	// certificate is not trusted.
	ReasonTLSFailed = "TLSFailed"
	// ReasonTimedOut says that the answer was not there, or not whole, in time.
	ReasonTimedOut = "TimedOut"
	// ReasonTooManyRedirects says that more than ten redirects followed.
	ReasonTooManyRedirects = "TooManyRedirects"
	// ReasonBadStatus says that the answer's status is not one of the good ones.
	ReasonBadStatus = "BadStatus"
	// ReasonBadAnswer says that the answer does not match what is expected.
	ReasonBadAnswer = "BadAnswer"
	// ReasonAnswerTooLarge says that the answer has more than 512 KiB, or than the
	// expressions of the probe permit.
	ReasonAnswerTooLarge = "AnswerTooLarge"
	// ReasonTooSlow says that a probe succeeded, but took longer than
	// spec.maxDuration.
	ReasonTooSlow = "TooSlow"
	// ReasonSecretUnavailable says that a Secret of a probe or of a PagingPolicy is
	// missing, lacks a key or the label, cannot be read, or holds something else.
	ReasonSecretUnavailable = "SecretUnavailable"
	// ReasonPolicyConflict says that another PagingPolicy selects the same.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonNoFleetPolicy says that no PagingPolicy has the scope Fleet, so that
	// nothing is written for Alertmanager.
	ReasonNoFleetPolicy = "NoFleetPolicy"
	// ReasonConfigurationInvalid says that Alertmanager would not accept what was made
	// of all PagingPolicies, or that an alert would reach nobody.
	ReasonConfigurationInvalid = "ConfigurationInvalid"
	// ReasonInForce says that a silence is in force.
	ReasonInForce = "InForce"
	// ReasonScheduled says that a silence begins later.
	ReasonScheduled = "Scheduled"
	// ReasonEnded says that the time of a silence is over.
	ReasonEnded = "Ended"
	// ReasonExcluding says that a silence excludes time from error budgets.
	ReasonExcluding = "Excluding"
	// ReasonEndTooLate says that a silence would last longer than the hub permits.
	ReasonEndTooLate = "EndTooLate"
	// ReasonNoAlertmanager says that the hub knows no Alertmanager.
	ReasonNoAlertmanager = "NoAlertmanager"
	// ReasonAlertmanagerUnreachable says that Alertmanager could not be read or written.
	ReasonAlertmanagerUnreachable = "AlertmanagerUnreachable"
	// ReasonIncidentUnresolved says that PagerDuty did not take the resolution of an incident
	// that a silence would hide. The silence waits for it.
	ReasonIncidentUnresolved = "IncidentUnresolved"
	// ReasonWebhookCAUnavailable says that a probe takes its CA from webhooks, and
	// there is none with a caBundle that calls the target.
	ReasonWebhookCAUnavailable = "WebhookCAUnavailable"
	// ReasonNotServing says that a gRPC server says that it does not serve.
	ReasonNotServing = "NotServing"
	// ReasonProtocolError says that the answer does not follow the protocol, or
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
	// LabelPaging marks objects on the hub that hold configuration of Alertmanager, with
	// the value "true".
	LabelPaging = "bellwether.dev/paging"
	// LabelPagingHub names the hub that wrote such an object and deletes it, by the namespace
	// that its configuration is in.
	LabelPagingHub = "bellwether.dev/paging-hub"
	// LabelAutomaticSilence marks an AlertSilence that the hub made and deletes by itself. Its
	// value is why: upgrade, veto or removal.
	LabelAutomaticSilence = "bellwether.dev/automatic-silence"
	// LabelRollout and LabelWave hold the frozen membership of an
	// OperatorInstall: the OperatorRollout it belongs to, and its wave.
	LabelRollout = "bellwether.dev/rollout"
	LabelWave    = "bellwether.dev/wave"
	// LabelManaged marks objects that an agent created on a fleet cluster.
	LabelManaged = "bellwether.dev/managed"

	// LabelAggregateToBackup marks a ClusterRole on a fleet cluster whose rules the
	// agent gets for backups and restores, with the value "true".
	LabelAggregateToBackup = "bellwether.dev/aggregate-to-agent-backup"

	// LabelAggregateToMigration marks a ClusterRole on a fleet cluster whose rules the
	// agent gets to store custom resources anew, with the value "true".
	LabelAggregateToMigration = "bellwether.dev/aggregate-to-agent-migration"

	// LabelRules marks objects on the hub that hold rules for Prometheus: its value
	// is "true", and the keys of a ConfigMap that are rule files end in .rules.yaml.
	LabelRules = "bellwether.dev/rules"

	// LabelHostedCluster marks a Secret that holds what an agent needs which runs
	// elsewhere to serve a cluster: its value is the cluster's name.
	LabelHostedCluster = "bellwether.dev/hosted-cluster"
	// HostedHubKey and HostedClusterKey are the keys of such a Secret with the
	// kubeconfigs of the hub, as this cluster's agent, and of the cluster; HostedPortsKey
	// holds the range of ports of its catalog views, as in 50100-50129.
	HostedHubKey     = "hub"
	HostedClusterKey = "cluster"
	HostedPortsKey   = "viewPorts"

	// LabelLeftBehind marks the ConfigMaps on the hub that list which operators were
	// left on a cluster when it left the fleet: its value is the cluster's name.
	LabelLeftBehind = "bellwether.dev/left-behind"
	// LabelClusterUID tells, on such a ConfigMap, FleetClusters of the same name apart.
	LabelClusterUID = "bellwether.dev/cluster-uid"

	// AnnotationSpecHash holds the SHA-256 of a downstream object's rendered
	// template.
	AnnotationSpecHash = "bellwether.dev/spec-hash"
	// AnnotationRevision holds, on an InstallPlan, the revision of the admission
	// for which it was approved.
	AnnotationRevision = "bellwether.dev/revision"
	// AnnotationKept holds, on an operator's Subscription, what the cluster keeps of the
	// operator for a hub that has lost its objects: JSON, with its ManagedOperator and a
	// KeptAdmission.
	AnnotationKept = "bellwether.dev/kept"
	// AnnotationAdopted holds, on a Subscription that was adopted, what it was before, as
	// JSON: when it was adopted, for which ManagedOperator, and its spec and labels.
	AnnotationAdopted = "bellwether.dev/adopted"
	// AnnotationAgentVersion and the two below are set by the agent on its
	// Lease; an empty OLM version means that OLM is missing.
	AnnotationAgentVersion      = "bellwether.dev/agent-version"
	AnnotationKubernetesVersion = "bellwether.dev/kubernetes-version"
	AnnotationOLMVersion        = "bellwether.dev/olm-version"
	// AnnotationAgentAccount is set by the agent on its Lease: the UID of the ServiceAccount whose
	// token it uses, or empty where it uses other credentials.
	AnnotationAgentAccount = "bellwether.dev/agent-account"
	// AnnotationAPIServerUnreachableSince is set by the agent on its Lease: the
	// time (RFC 3339, by the agent's clock) of the first failed check of its own
	// cluster's API server, or empty where the check made for the Lease's last
	// renewal succeeded. Without it no check was made yet.
	AnnotationAPIServerUnreachableSince = "bellwether.dev/api-server-unreachable-since"
	// AnnotationVeto is set by the agent on its Lease: the veto of its cluster's owner
	// as JSON, empty where there is none.
	AnnotationVeto = "bellwether.dev/veto"
	// AnnotationAPIServerError is the error of that first failed check.
	AnnotationAPIServerError = "bellwether.dev/api-server-error"

	// AnnotationTimeZone is set by people on a FleetCluster: the IANA name of its
	// time zone, for ChangeWindows with the time zone Cluster.
	AnnotationTimeZone = "bellwether.dev/time-zone"

	// AnnotationDiscovered is "true" on a FleetCluster that discovery made, and that goes
	// with its source.
	AnnotationDiscovered = "bellwether.dev/discovered"

	// LabelDiscover with the value "false", on the object that a FleetCluster would be
	// discovered from, keeps that cluster out of the fleet.
	LabelDiscover = "bellwether.dev/discover"

	// FinalizerAgent is held by the agent on an OperatorInstall until the
	// removal policy is carried out.
	FinalizerAgent = "bellwether.dev/agent"
	// FinalizerHub is held by the hub on a FleetCluster and a ManagedOperator
	// until what they own on fleet clusters has been dealt with.
	FinalizerHub = "bellwether.dev/hub"

	// LeaseName is the name of the agent's Lease in the cluster's namespace.
	LeaseName = "bellwether-agent"
	// ScanName is the name of the OperatorScan in the cluster's namespace.
	ScanName = "bellwether-agent"
	// HubLeaseName is the name of the Lease that the replicas of a hub agree through, in the hub's namespace.
	HubLeaseName = "bellwether-hub"
	// AgentServiceAccount is the name of the agent's ServiceAccount, Role and
	// RoleBinding in the cluster's namespace on the hub.
	AgentServiceAccount = "bellwether-agent"
	// VetoConfigMap is the name of the ConfigMap beside the agent, on its cluster, by which the cluster's owner refuses
	// changes.
	VetoConfigMap = "bellwether-veto"
)
