/** The subresource `scale` of workloads: autoscaling/v1 Scale (ScaleREST in pkg/registry/apps/deployment/storage/storage.go). */
import { schemaReader } from '../../../../api/decode.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { isObject } from '../../../../api/text/json.ts'
import { countProblems } from '../../../../api/validation/workload-validation.ts'
import { ScaleSchema } from '../../../../api/workloads/scale.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { SubresourceView } from '../../handlers/strategy.ts'

const scaleTable: TableOf<AnyObject> = {
  columns: tableColumns('Name', 'Desired#', 'Available#', 'Age'),
  cells: ({ metadata, spec, status }, nowMs) => [
    metadata.name ?? '',
    countIn(spec),
    countIn(status),
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

type Scalable = AnyObject & {
  readonly spec?: { readonly replicas?: number | undefined }
  readonly status?: { readonly replicas?: number | undefined }
}

/** `selectorOf`: the selector of the pods, as a text. */
export function scaleView<T extends Scalable>(selectorOf: (object: T) => string): SubresourceView<T> {
  return {
    access: 'view',
    kind: 'Scale',
    group: 'autoscaling',
    version: 'v1',
    schema: ScaleSchema,
    reader: schemaReader(ScaleSchema),
    table: scaleTable,
    show(object) {
      const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
      const known = Object.entries({ name, namespace, uid, resourceVersion, creationTimestamp })
      const selector = selectorOf(object)
      return {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: Object.fromEntries(known.filter(([, value]) => value !== undefined)),
        spec: { replicas: object.spec?.replicas ?? 0 },
        status: { replicas: object.status?.replicas ?? 0, ...(selector !== '' && { selector }) },
      }
    },
    problems: ({ spec }) => countProblems('spec.replicas', countIn(spec)),
    fields: ({ spec }) => ({ spec: { replicas: countIn(spec) } }),
  }
}

/** `replicas` of a decoded spec or status; absent, it is 0 as in Go. */
function countIn(part: unknown): number {
  const replicas = isObject(part) ? part['replicas'] : undefined
  return typeof replicas === 'number' ? replicas : 0
}
