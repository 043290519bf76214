/** The subresource `scale` of custom kinds: autoscaling/v1 Scale at the paths that the definition names. */
import { ApiError } from '../../../../api/api-error.ts'
import type { AnyObject } from '../../../../api/meta.ts'
import { clipped, invalid, type Problem } from '../../../../api/problem.ts'
import type { DefinedSubresources } from '../../../../api/structural/custom-resource-definition.ts'
import { isObject } from '../../../../api/text/json.ts'
import type { SubresourceView } from '../../handlers/strategy.ts'
import { namesOfPath, valueAtNames, withValueAt } from '../../structural/simple-path.ts'
import { scaleView } from '../workloads/scale.ts'

type ScaledObject = AnyObject & {
  readonly spec?: { readonly replicas?: number }
  readonly status?: { readonly replicas?: number }
}
type DefinedScale = NonNullable<DefinedSubresources['scale']>

export function customScale(scale: DefinedScale): SubresourceView<AnyObject> {
  const names = namesOfPath(scale.specReplicasPath)
  const selectorOf = (object: AnyObject) => {
    const selector = valueAtNames(object, namesOfPath(scale.labelSelectorPath ?? ''))
    return typeof selector === 'string' ? selector : ''
  }
  const view = scaleView<ScaledObject>(() => '')
  return {
    ...view,
    show(object) {
      const replicas = valueAtNames(object, names)
      if (typeof replicas !== 'number') {
        throw new ApiError('InternalError', `the spec replicas field "${scale.specReplicasPath}" does not exist`)
      }
      const present = valueAtNames(object, namesOfPath(scale.statusReplicasPath))
      const status = { replicas: typeof present === 'number' ? present : 0 }
      const scaled = view.show({ ...object, spec: { replicas }, status })
      const selector = selectorOf(object)
      return { ...scaled, status: { ...status, ...(selector !== '' && { selector }) } }
    },
    change: (stored, wanted) => withValueAt(stored, names, countIn(wanted.spec)) as AnyObject,
    fields: (wanted) => withValueAt({}, names, countIn(wanted.spec)),
  }
}

function countIn(spec: unknown): number {
  const replicas = isObject(spec) ? spec['replicas'] : undefined
  return typeof replicas === 'number' ? replicas : 0
}

/** As NestedInt64 (apimachinery, unstructured/helpers.go). */
function wrongType(path: string, value: unknown, wanted: string): string {
  const actual = typeof value === 'number' ? 'float64' : typeof value
  return `${path} accessor error: ${clipped(String(value))} is of the type ${actual}, expected ${wanted}`
}

const mostReplicas = 2 ** 31 - 1

/** ValidateScaleSpec and ValidateScaleStatus of registry/customresource/validator.go. */
export function scaleProblems(scale: DefinedScale | undefined, object: AnyObject): readonly Problem[] {
  if (scale === undefined) return []
  const replicas = (path: string) => {
    const value = valueAtNames(object, namesOfPath(path))
    if (value === undefined) return []
    if (!Number.isInteger(value)) return [invalid(path, 0, wrongType(path, value, 'int64'))]
    if (Number(value) < 0) return [invalid(path, value, 'should be a non-negative integer')]
    return Number(value) > mostReplicas ? [invalid(path, value, `should be less than or equal to ${mostReplicas}`)] : []
  }
  const { labelSelectorPath } = scale
  const selector = labelSelectorPath === undefined ? undefined : valueAtNames(object, namesOfPath(labelSelectorPath))
  return [
    ...replicas(scale.specReplicasPath),
    ...replicas(scale.statusReplicasPath),
    ...(selector === undefined || typeof selector === 'string'
      ? []
      : [invalid(labelSelectorPath ?? '', '', wrongType(labelSelectorPath ?? '', selector, 'string'))]),
  ]
}
