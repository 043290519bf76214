/** Cells and texts that the tables of workloads share (pkg/printers/internalversion/printers.go). */
import type { LabelSelector } from '../../../../api/meta.ts'
import type { PodTemplateSpec } from '../../../../api/pod.ts'

/** Names and images of the containers of a template. */
export function containerCells(template: PodTemplateSpec | undefined): readonly [string, string] {
  const containers = template?.spec.containers ?? []
  return [containers.map(({ name }) => name).join(), containers.map(({ image = '' }) => image).join()]
}

/** `a=b,c in (d,e),!f`, sorted by key; '' where everything is selected (Selector.String, apimachinery labels/selector.go). */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` }))
  const others = matchExpressions.map(({ key, operator, values = [] }) => ({
    key,
    text: expressionText(key, operator, [...values].sort()),
  }))
  return [...equal, ...others]
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ text }) => text)
    .join()
}

function expressionText(key: string, operator: string, values: readonly string[]): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join()})`
    case 'NotIn':
      return `${key} notin (${values.join()})`
    case 'DoesNotExist':
      return `!${key}`
    default:
      return key
  }
}
