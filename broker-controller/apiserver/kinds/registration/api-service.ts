/** apiregistration.k8s.io/v1 APIService (kube-aggregator, pkg/registry/apiservice/strategy.go and etcd/etcd.go). */
import { ApiError } from '../../../../api/api-error.ts'
import { pathSegmentProblem } from '../../../../api/names.ts'
import type { Problem } from '../../../../api/problem.ts'
import {
  type APIService,
  availableCondition,
  localAvailability,
  withAvailability,
} from '../../../../api/registration/api-service.ts'
import { apiServiceProblems, apiServiceStatusProblems } from '../../../../api/registration/api-service-problems.ts'
import { resources } from '../../../../api/resources.ts'
import { rfc3339 } from '../../../../daemon/clock.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import { type KindStrategy, type ResourceNeeds, replaceStatus } from '../../handlers/strategy.ts'
import { ownGroupProblems } from './own-groups.ts'

const apiServiceTable: TableOf<APIService> = {
  columns: tableColumns('Name', 'Service', 'Available', 'Age'),
  cells: ({ metadata, spec: { service }, status }, nowMs) => [
    metadata.name ?? '',
    service === undefined ? 'Local' : `${service.namespace ?? ''}/${service.name ?? ''}`,
    availabilityText({ status }),
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

function availabilityText(apiService: Pick<APIService, 'status'>): string {
  const { status = 'Unknown', reason } = availableCondition(apiService) ?? {}
  return status === 'True' || !reason ? status : `${status} (${reason})`
}

/** Each is checked every 30 s, and its discovery is kept. */
const mostRemote = 100
const defaultPort = 443

export const apiServiceStrategy: KindStrategy<APIService> = {
  ...resources.apiservices,
  takesAnyFinalizer: true,
  needsVersion: true,
  table: apiServiceTable,
  selectableFields: [],
  nameProblem: pathSegmentProblem,
  subresources: {
    status: {
      access: 'update',
      writes: 'status',
      change: (stored, wanted) => replaceStatus(stored, wanted.status),
      validateUpdate: (_, now) => apiServiceStatusProblems(now),
    },
  },
  resetFields: { '': ['status'], status: ['metadata', 'spec'] },
  emptyStatus: {},
  withDefaults: ({ spec, ...rest }) => ({ ...rest, spec: withPort(spec) }),
  prepareForCreate: ({ status: _, ...rest }, { nowMs }) =>
    rest.spec.service === undefined
      ? { ...rest, status: withAvailability(undefined, localAvailability, rfc3339(nowMs)) }
      : rest,
  validateCreate: problemsOf,
  validateUpdate: (_, now) => problemsOf(now),
  async admitCreate({ spec }, _, needs) {
    if (spec.service !== undefined) await refuseMore(needs)
    return {}
  },
  async admitUpdate({ spec }, needs, { old }) {
    if (spec.service !== undefined && old.spec.service === undefined) await refuseMore(needs)
  },
}

function withPort(spec: APIService['spec']): APIService['spec'] {
  const { service } = spec
  if (service === undefined) return spec
  return { ...spec, service: { ...service, port: service.port ?? defaultPort } }
}

/** Another server may not take the place of kinds that this program and its nodes depend on. */
function problemsOf(apiService: APIService): readonly Problem[] {
  const { service, group = '' } = apiService.spec
  return [...apiServiceProblems(apiService), ...(service === undefined ? [] : ownGroupProblems('spec.service', group))]
}

async function refuseMore({ store }: Pick<ResourceNeeds, 'store'>): Promise<void> {
  const { items } = await store.list('apiservices')
  if (items.filter(({ spec }) => spec.service !== undefined).length < mostRemote) return
  const why = `the fleet has ${mostRemote} APIServices of other servers, the most it may have`
  throw new ApiError('Forbidden', `apiservices.apiregistration.k8s.io is forbidden: ${why}`)
}
