/** core/v1 ConfigMap (pkg/registry/core/configmap/strategy.go). */
import type { ConfigMap } from '../../../../api/config-map.ts'
import { invalid, type Problem } from '../../../../api/problem.ts'
import { resources } from '../../../../api/resources.ts'
import { storyOf } from '../../../../daemon/log.ts'
import { revocationsIn, revocationsKey } from '../../../store/revocations.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'
import { decodedBytes, frozenProblems, keyProblems, sizeProblems, textBytes } from './object-data.ts'

const configMapTable: TableOf<ConfigMap> = {
  columns: tableColumns('Name', 'Data', 'Age'),
  cells: ({ metadata, data = {}, binaryData = {} }, nowMs) => [
    metadata.name ?? '',
    Object.keys(data).length + Object.keys(binaryData).length,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

export const configMapStrategy: KindStrategy<ConfigMap> = {
  ...resources.configmaps,
  table: configMapTable,
  selectableFields: [],
  subresources: {},
  validateCreate: configMapProblems,
  validateUpdate: (old, now) => [...configMapProblems(now), ...frozenProblems(old, now, ['data', 'binaryData'])],
}

function configMapProblems(map: ConfigMap): readonly Problem[] {
  const { data = {}, binaryData = {} } = map
  const twice = Object.keys(binaryData).filter((key) => Object.hasOwn(data, key))
  return [
    ...revocationProblems(map),
    ...keyProblems('data', data),
    ...keyProblems('binaryData', binaryData),
    ...twice.map((key) => invalid(`binaryData[${key}]`, key, 'is also a key of data')),
    ...sizeProblems('[]', textBytes(data) + decodedBytes(binaryData)),
  ]
}

/** A list that cannot be understood would keep the controller from starting. */
function revocationProblems(map: ConfigMap): readonly Problem[] {
  const { name, namespace } = map.metadata
  if (name !== revocationsKey.name || namespace !== revocationsKey.namespace) return []
  try {
    revocationsIn(map)
    return []
  } catch (error) {
    return [invalid('data[revoked]', map.data?.['revoked'], storyOf(error))]
  }
}
