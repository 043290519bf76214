/** storage.k8s.io/v1 CSIDriver (pkg/registry/storage/csidriver/strategy.go, pkg/apis/storage/validation/validation.go). */
import { duplicate, invalid, notSupported, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import type { CSIDriver, CSIDriverSpec } from '../../../../api/storage/csi-driver.ts'
import { repeatedPlaces } from '../../../../api/validation/repeated.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const csiDriverTable: TableOf<CSIDriver> = {
  columns: tableColumns(
    ...['Name', 'AttachRequired?', 'PodInfoOnMount?', 'StorageCapacity?', 'TokenRequests', 'RequiresRepublish?'],
    ...['Modes', 'Age'],
  ),
  cells: ({ metadata, spec = {} }, nowMs) => [
    metadata.name ?? '',
    spec.attachRequired ?? true,
    spec.podInfoOnMount ?? false,
    spec.storageCapacity ?? false,
    spec.tokenRequests?.map(({ audience }) => audience).join() ?? '<unset>',
    spec.requiresRepublish ?? false,
    spec.volumeLifecycleModes?.join() || '<none>',
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const csiDriverStrategy: KindStrategy<CSIDriver> = {
  ...resources.csidrivers,
  needsVersion: true,
  returnsDeletedObject: true,
  table: csiDriverTable,
  selectableFields: [],
  subresources: {},
  withDefaults: ({ spec = {}, ...driver }) => ({ ...driver, spec: withSpecDefaults(spec) }),
  validateCreate: ({ spec = {} }) => specProblems(spec),
  validateUpdate: (old, now) => [...specProblems(now.spec ?? {}), ...immutableProblems(old.spec ?? {}, now.spec ?? {})],
}

function withSpecDefaults(spec: CSIDriverSpec): CSIDriverSpec {
  const { volumeLifecycleModes: modes = [] } = spec
  return {
    ...spec,
    attachRequired: spec.attachRequired ?? true,
    podInfoOnMount: spec.podInfoOnMount ?? false,
    storageCapacity: spec.storageCapacity ?? false,
    fsGroupPolicy: spec.fsGroupPolicy ?? 'ReadWriteOnceWithFSType',
    volumeLifecycleModes: modes.length === 0 ? ['Persistent'] : modes,
    requiresRepublish: spec.requiresRepublish ?? false,
    seLinuxMount: spec.seLinuxMount ?? false,
  }
}

const groupPolicies = ['File', 'None', 'ReadWriteOnceWithFSType']
const lifecycleModes = ['Persistent', 'Ephemeral']
const shortestTokenSeconds = 600
const longestTokenSeconds = 2 ** 32

function specProblems({ fsGroupPolicy, tokenRequests = [], volumeLifecycleModes = [] }: CSIDriverSpec) {
  const repeated = repeatedPlaces(tokenRequests.map(({ audience }) => audience))
  return [
    ...(fsGroupPolicy === undefined || groupPolicies.includes(fsGroupPolicy)
      ? []
      : [notSupported('spec.fsGroupPolicy', fsGroupPolicy, groupPolicies)]),
    ...tokenRequests.flatMap(({ audience, expirationSeconds }, index) => {
      const at = `spec.tokenRequests[${index}]`
      if (repeated.has(index)) return [duplicate(`${at}.audience`, audience)]
      return expirationProblems(`${at}.expirationSeconds`, expirationSeconds)
    }),
    ...volumeLifecycleModes
      .filter((mode) => !lifecycleModes.includes(mode))
      .map((mode) => notSupported('spec.volumeLifecycleModes', mode, lifecycleModes)),
  ]
}

function expirationProblems(field: string, seconds: number | undefined): readonly Problem[] {
  if (seconds === undefined) return []
  if (seconds < shortestTokenSeconds) {
    return [invalid(field, seconds, 'may not specify a duration less than 10 minutes')]
  }
  if (seconds <= longestTokenSeconds) return []
  return [invalid(field, seconds, 'may not specify a duration larger than 2^32 seconds')]
}

/** The path `attachedRequired` is that of Kubernetes. */
function immutableProblems(old: CSIDriverSpec, now: CSIDriverSpec): readonly Problem[] {
  const isSame = equalJSON(old.volumeLifecycleModes ?? [], now.volumeLifecycleModes ?? [])
  return [
    ...(old.attachRequired === now.attachRequired
      ? []
      : [invalid('spec.attachedRequired', now.attachRequired, 'field is immutable')]),
    ...(isSame ? [] : [invalid('spec.volumeLifecycleModes', now.volumeLifecycleModes, 'field is immutable')]),
  ]
}
