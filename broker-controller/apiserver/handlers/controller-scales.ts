/** The scales of workloads for the controllers of this process, read and written as by a client. */
import { ApiError, notFound } from '../../../api/api-error.ts'
import type { ResourceName } from '../../../api/resources.ts'
import type { Scale } from '../../../api/workloads/scale.ts'
import { changeObject } from './changing.ts'
import { controllerIdentity } from './controller-creation.ts'
import { inVersionOf } from './conversion/conversion-gate.ts'
import { type KindRegistry, type ResourceNeeds, viewOf } from './strategy.ts'

type Target = {
  readonly apiVersion?: string | undefined
  readonly kind?: string | undefined
  readonly name?: string | undefined
}
type TargetScale = { readonly resource: ResourceName; readonly scale: Scale }

export interface ControllerScales {
  get(namespace: string, target: Target): Promise<TargetScale>
  update(target: TargetScale, replicas: number, controller: string): Promise<void>
}

/** As the controllers of Kubernetes are called in managedFields: they are one program. */
const manager = 'kube-controller-manager'

/** Rejects as client-go's scale client does (scaleForResourceMappings in pkg/controller/podautoscaler/horizontal.go). */
export function controllerScales(needs: ResourceNeeds, kinds: KindRegistry): ControllerScales {
  return {
    async get(namespace, { apiVersion = '', kind = '', name = '' }) {
      const group = groupOf(apiVersion)
      const resource = kinds.served.find((one) => one.group === group && one.kind === kind)
      if (resource === undefined) {
        throw new Error(`no matches for kind ${JSON.stringify(kind)} in group ${JSON.stringify(group)}`)
      }
      const view = viewOf(resource, 'scale')
      if (view === undefined) throw new ApiError('NotFound', 'the server could not find the requested resource')
      const stored = await inVersionOf(resource, needs).store.get(resource.id, { namespace, name })
      if (stored === undefined) throw notFound({ name: `${resource.name}/scale`, group }, name)
      // A view named `scale` shows a Scale.
      return { resource: resource.id, scale: view.show(stored) as Scale }
    },
    async update({ resource: id, scale }, replicas, controller) {
      // The storage version of a custom kind may have none.
      const resource = kinds.served.find((one) => one.id === id && viewOf(one, 'scale') !== undefined)
      if (resource === undefined) throw new TypeError(`No such resource: ${id}`)
      const { namespace = '', name = '' } = scale.metadata
      await changeObject(
        {
          route: { kind: 'resource', verb: 'update', resource, namespace, name, subresource: 'scale' },
          identity: controllerIdentity(controller),
          query: new URLSearchParams(),
          accept: undefined,
          contentType: 'application/json',
          userAgent: manager,
          readBody: async () => Buffer.from(JSON.stringify({ ...scale, spec: { ...scale.spec, replicas } })),
          signal: new AbortController().signal,
        },
        inVersionOf(resource, needs),
      )
    },
  }
}

/** `apps` for `apps/v1`, '' for `v1`. Throws as ParseGroupVersion (apimachinery, runtime/schema). */
function groupOf(apiVersion: string): string {
  const parts = apiVersion.split('/')
  if (parts.length > 2) throw new Error(`unexpected GroupVersion string: ${apiVersion}`)
  return parts.length === 2 ? (parts[0] ?? '') : ''
}
