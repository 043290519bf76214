/** core/v1 PodTemplate (pkg/registry/core/podtemplate/strategy.go). */
import { resources } from '../../../../api/resources.ts'
import { withTemplateDefaults } from '../../../../api/validation/pod-defaults.ts'
import { podTemplateProblems } from '../../../../api/validation/pod-validation.ts'
import { podTemplateWarnings } from '../../../../api/warnings/pod-warnings.ts'
import type { PodTemplate } from '../../../../api/workloads/pod-template.ts'
import { equalJSON } from '../../../store/equal-json.ts'
import { orNone, type TableOf, tableColumns } from '../../handlers/cells.ts'
import type { KindStrategy } from '../../handlers/strategy.ts'

const podTemplateTable: TableOf<PodTemplate> = {
  columns: tableColumns('Name', 'Containers', 'Images', 'Pod Labels'),
  cells: ({ metadata, template }) => {
    const labels = Object.entries(template.metadata?.labels ?? {}).map(([key, value]) => `${key}=${value}`)
    return [
      metadata.name ?? '',
      template.spec.containers.map(({ name }) => name).join(),
      template.spec.containers.map(({ image = '' }) => image).join(),
      orNone(labels.sort().join()),
    ]
  },
}

export const podTemplateStrategy: KindStrategy<PodTemplate> = {
  ...resources.podtemplates,
  returnsDeletedObject: true,
  table: podTemplateTable,
  selectableFields: [],
  subresources: {},
  withDefaults: (one) => ({ ...one, template: withTemplateDefaults(one.template) }),
  warningsOnCreate: ({ template }) => podTemplateWarnings('template', template),
  warningsOnUpdate: (old, { template }) =>
    equalJSON(old.template, template) ? [] : podTemplateWarnings('template', template),
  podSecurity: { judges: 'template', parts: ({ template }) => template },
  validateCreate: ({ template }) => podTemplateProblems('template', template),
  validateUpdate: (_, { template }) => podTemplateProblems('template', template),
}
