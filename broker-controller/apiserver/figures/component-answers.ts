/** core/v1 ComponentStatus (pkg/registry/core/componentstatus/rest.go), computed when it is requested. */
import { notFound } from '../../../api/api-error.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { selectionOf } from '../handlers/list-options.ts'
import { type ApiResponse, objectAnswer } from '../wire/answers.ts'
import { answerForm } from '../wire/content-negotiation.ts'
import { type ComponentRoute, componentKind } from './component-routes.ts'

export type ComponentRequest = {
  readonly route: ComponentRoute
  readonly query: URLSearchParams
  readonly accept: string | undefined
}

/** `check` rejects, with the reason, where something is not well. */
type HealthCheck = { readonly name: string; readonly check: () => Promise<void> }

export type ComponentNeeds = {
  /** Those of the store are the health of etcd. */
  readonly readiness: readonly HealthCheck[]
}

type Component = {
  readonly kind: 'ComponentStatus'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly name: string; readonly creationTimestamp: null }
  readonly conditions: readonly [
    {
      readonly type: 'Healthy'
      readonly status: 'True' | 'False'
      readonly message: string
      readonly error?: string
    },
  ]
}

/** Also for a store other than etcd: clients look for this name. */
const storeName = 'etcd-0'
const checksOfStore = ['store', 'etcd', 'store-space']
const deprecated = 'v1 ComponentStatus is deprecated in v1.19+'

/** The controller that leads answers: its controllers and its scheduler run. Throws the ApiError of the answer. */
export async function componentAnswer(request: ComponentRequest, { readiness }: ComponentNeeds): Promise<ApiResponse> {
  const { route, query, accept } = request
  const all = [component('controller-manager'), component('scheduler'), await storeComponent(readiness)]
  const { matches } = selectionOf({ selectableFields: [] }, query)
  const items = all.filter((one) => (route.verb === 'list' ? matches(plainly(one)) : one.metadata.name === route.name))
  const [only] = items
  if (route.verb === 'get' && only === undefined) throw notFound(componentKind, route.name)
  if (answerForm(accept) === 'table') return objectAnswer(tableOf(items), 200, [deprecated])
  const list = { kind: 'ComponentStatusList', apiVersion: 'v1', metadata: {}, items }
  return objectAnswer(route.verb === 'list' ? list : only, 200, [deprecated])
}

function component(name: string, error?: string): Component {
  const condition =
    error === undefined
      ? ({ type: 'Healthy', status: 'True', message: 'ok' } as const)
      : ({ type: 'Healthy', status: 'False', message: '', error } as const)
  return {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name, creationTimestamp: null },
    conditions: [condition],
  }
}

async function storeComponent(readiness: readonly HealthCheck[]): Promise<Component> {
  for (const { name, check } of readiness) {
    if (!checksOfStore.includes(name)) continue
    try {
      await check()
    } catch (error) {
      return component(storeName, messageOf(error))
    }
  }
  return component(storeName)
}

/** Selectors compare the metadata of stored objects. */
function plainly({ kind, apiVersion, metadata: { name } }: Component) {
  return { kind, apiVersion, metadata: { name, uid: '', resourceVersion: '', creationTimestamp: '' } }
}

function tableOf(items: readonly Component[]) {
  const column = (name: string, format = '') => ({ name, type: 'string', format, description: '', priority: 0 })
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: {},
    columnDefinitions: [column('Name', 'name'), column('Status'), column('Message'), column('Error')],
    rows: items.map(({ metadata, conditions: [{ status, message, error = '' }] }) => ({
      cells: [metadata.name, status === 'True' ? 'Healthy' : 'Unhealthy', message, error],
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata },
    })),
  }
}
