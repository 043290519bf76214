/** The order of groups and versions in discovery: kubectl takes the first kind of an ambiguous name. */

export type GroupVersion = { readonly group: string; readonly version: string }
export type Priority = { readonly groupPriorityMinimum: number; readonly versionPriority: number }

/** Group priority, then version → its priority (cmd/kube-apiserver/app/aggregator.go, pkg/controlplane/apiserver/aggregator.go). */
const ofGroups: { readonly [group: string]: readonly [number, { readonly [version: string]: number }] } = {
  '': [18_000, { v1: 1 }],
  apps: [17_800, { v1: 15 }],
  'events.k8s.io': [17_750, { v1: 15 }],
  'authentication.k8s.io': [17_700, { v1: 15 }],
  'authorization.k8s.io': [17_600, { v1: 15 }],
  autoscaling: [17_500, { v2: 30, v1: 15 }],
  batch: [17_400, { v1: 15 }],
  'certificates.k8s.io': [17_300, { v1: 15 }],
  'networking.k8s.io': [17_200, { v1: 15 }],
  policy: [17_100, { v1: 15 }],
  'rbac.authorization.k8s.io': [17_000, { v1: 15 }],
  'storage.k8s.io': [16_800, { v1: 15 }],
  'apiextensions.k8s.io': [16_700, { v1: 15 }],
  'admissionregistration.k8s.io': [16_700, { v1: 15 }],
  'scheduling.k8s.io': [16_600, { v1: 15 }],
  'coordination.k8s.io': [16_500, { v1: 15 }],
  'node.k8s.io': [16_300, { v1: 15 }],
  'discovery.k8s.io': [16_200, { v1: 15 }],
  'flowcontrol.apiserver.k8s.io': [16_100, { v1: 21 }],
  // As the manifest of metrics-server has it.
  'metrics.k8s.io': [100, { v1beta1: 100 }],
}

/** That of the groups of CustomResourceDefinitions (pkg/controlplane/controller/crdregistration). */
const ofDefinitions: Priority = { groupPriorityMinimum: 1_000, versionPriority: 100 }

/** undefined: the fleet does not serve it by itself. */
export function builtInPriority({ group, version }: GroupVersion): Priority | undefined {
  const [groupPriorityMinimum, versions] = (Object.hasOwn(ofGroups, group) && ofGroups[group]) || []
  const versionPriority = versions?.[version]
  return groupPriorityMinimum === undefined || versionPriority === undefined
    ? undefined
    : { groupPriorityMinimum, versionPriority }
}

/** Priority of a version that the fleet serves itself, unless its APIService states another one. */
export function localPriority(one: GroupVersion): Priority {
  return builtInPriority(one) ?? ofDefinitions
}

export type OrderedGroup<Item> = { readonly group: string; readonly versions: readonly Item[] }

/** Groups by the highest priority of their versions, versions by theirs (SortedByGroupAndVersion). */
export function inGroupOrder<Item extends GroupVersion & Priority>(
  items: readonly Item[],
): readonly OrderedGroup<Item>[] {
  const groups = new Map<string, Item[]>()
  for (const item of [...items].sort(byGroup)) {
    const same = groups.get(item.group)
    if (same === undefined) groups.set(item.group, [item])
    else same.push(item)
  }
  return [...groups].map(([group, versions]) => ({ group, versions: versions.sort(byVersion) }))
}

function byGroup(a: GroupVersion & Priority, b: GroupVersion & Priority): number {
  return b.groupPriorityMinimum - a.groupPriorityMinimum || compareTexts(nameOf(a), nameOf(b))
}

function byVersion(a: GroupVersion & Priority, b: GroupVersion & Priority): number {
  return b.versionPriority - a.versionPriority || compareVersions(a.version, b.version)
}

function nameOf({ group, version }: GroupVersion): string {
  return `${version}.${group}`
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The newest first, which clients prefer; names of another form after all others (CompareKubeAwareVersionStrings, apimachinery util/version). */
export function compareVersions(a: string, b: string): number {
  return rankOf(b) - rankOf(a) || compareTexts(a, b)
}

/** `v2` is before `v1`, and that before any `v1beta1`, `v2alpha1`. */
function rankOf(version: string): number {
  const [text, major = '0', stage, minor = '0'] = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/.exec(version) ?? []
  if (text === undefined) return -1
  const stages = ['alpha', 'beta']
  return (stage === undefined ? 2 : stages.indexOf(stage)) * 1e6 + Number(major) * 1e3 + Number(minor)
}
