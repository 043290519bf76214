/** networking.k8s.io/v1 NetworkPolicy (pkg/registry/networking/networkpolicy/strategy.go). */
import type { NetworkPolicy, NetworkPolicyPort } from '../../../../api/network/network-policy.ts'
import { resources } from '../../../../api/resources.ts'
import { ageOf, orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { selectorText } from '../workloads/workload-cells.ts'
import { networkPolicyProblems } from './network-policy-problems.ts'

const networkPolicyTable: TableOf<NetworkPolicy> = {
  columns: tableColumns('Name', 'Pod-Selector', 'Age'),
  cells: ({ metadata, spec }, nowMs) => [
    metadata.name ?? '',
    orNone(selectorText(spec?.podSelector ?? {})),
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const networkPolicyStrategy: KindStrategy<NetworkPolicy> = {
  ...resources.networkpolicies,
  table: networkPolicyTable,
  selectableFields: [],
  subresources: {},
  withDefaults,
  validateCreate: networkPolicyProblems,
  validateUpdate: (_, now) => networkPolicyProblems(now),
}

/** SetDefaults_NetworkPolicy and SetDefaults_NetworkPolicyPort (pkg/apis/networking/v1/defaults.go). */
function withDefaults(policy: NetworkPolicy): NetworkPolicy {
  const { podSelector = {}, ingress, egress, policyTypes = [] } = policy.spec ?? {}
  return {
    ...policy,
    spec: {
      podSelector,
      ...(ingress && { ingress: ingress.map(withProtocols) }),
      ...(egress && { egress: egress.map(withProtocols) }),
      policyTypes: policyTypes.length > 0 ? policyTypes : ['Ingress', ...(egress?.length ? ['Egress'] : [])],
    },
  }
}

function withProtocols<Rule extends { readonly ports?: readonly NetworkPolicyPort[] | undefined }>(rule: Rule): Rule {
  if (rule.ports === undefined) return rule
  return { ...rule, ports: rule.ports.map((port) => ({ ...port, protocol: port.protocol ?? 'TCP' })) }
}
