/** The columns of HorizontalPodAutoscalers (formatHPAMetrics in pkg/printers/internalversion/printers.go). */
import type {
  HorizontalPodAutoscaler,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from '../../../../api/autoscaling/horizontal-pod-autoscaler.ts'
import { formatQuantity, type QuantityLike } from '../../../../api/quantity.ts'
import { ageOf, type TableOf, tableColumns } from '../../handlers/cells.ts'

export const autoscalerTable: TableOf<HorizontalPodAutoscaler> = {
  columns: tableColumns('Name', 'Reference', 'Targets', 'MinPods', 'MaxPods', 'Replicas', 'Age'),
  cells: ({ metadata, spec, status = {} }, nowMs) => [
    metadata.name ?? '',
    `${spec.scaleTargetRef?.kind ?? ''}/${spec.scaleTargetRef?.name ?? ''}`,
    targetsText(spec.metrics ?? [], status.currentMetrics ?? []),
    spec.minReplicas === undefined ? '<unset>' : String(spec.minReplicas),
    spec.maxReplicas ?? 0,
    status.currentReplicas ?? 0,
    ageOf(metadata.creationTimestamp, nowMs),
  ],
}

const mostShown = 2

function targetsText(metrics: readonly MetricSpec[], statuses: readonly MetricStatus[]): string {
  if (metrics.length === 0) return '<none>'
  const texts = metrics.map((metric, index) => metricText(metric, statuses[index]))
  const shown = texts.slice(0, mostShown).join(', ')
  return texts.length > mostShown ? `${shown} + ${texts.length - mostShown} more...` : shown
}

function metricText(metric: MetricSpec, status: MetricStatus | undefined): string {
  switch (metric.type) {
    case 'External':
      return valueText(metric.external?.target, status?.external)
    case 'Pods':
      return `${amount(status?.pods, 'averageValue')}/${quantityText(metric.pods?.target?.averageValue)}`
    case 'Object':
      return valueText(metric.object?.target, status?.object)
    case 'Resource':
      return `${metric.resource?.name ?? ''}: ${usageText(metric.resource?.target, status?.resource)}`
    case 'ContainerResource': {
      const { name = '', target } = metric.containerResource ?? {}
      return `${name}: ${usageText(target, status?.containerResource)}`
    }
    default:
      return '<unknown type>'
  }
}

type Current = { readonly current?: MetricValueStatus | undefined }

function valueText(target: MetricTarget = {}, status: Current | undefined): string {
  if (target.averageValue === undefined) return `${amount(status, 'value')}/${quantityText(target.value)}`
  const isKnown = status?.current?.averageValue !== undefined
  const current = isKnown ? amount(status, 'averageValue') : '<unknown>'
  return `${current}/${quantityText(target.averageValue)} (avg)`
}

function usageText(target: MetricTarget = {}, status: Current | undefined): string {
  if (target.averageValue !== undefined) {
    return `${amount(status, 'averageValue')}/${quantityText(target.averageValue)}`
  }
  const percent = (share: number | undefined, otherwise: string) => (share === undefined ? otherwise : `${share}%`)
  const current = percent(status?.current?.averageUtilization, '<unknown>')
  return `${current}/${percent(target.averageUtilization, '<auto>')}`
}

function amount(status: Current | undefined, field: 'value' | 'averageValue'): string {
  return status === undefined ? '<unknown>' : quantityText(status.current?.[field])
}

/** As Go prints a quantity, and one that is absent. */
function quantityText(quantity: QuantityLike | undefined): string {
  return quantity === undefined ? '<nil>' : formatQuantity(quantity)
}
