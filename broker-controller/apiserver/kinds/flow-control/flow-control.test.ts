import { test } from 'tap'
import { standardFlowSchemas, standardPriorityLevels } from '../../../../api/flow-control/standard-objects.ts'
import { causes, create, update } from '../../../testing/admitting.ts'

test('the standard levels and schemas are valid, and the mandatory ones stay as they are', async (t) => {
  for (const one of standardPriorityLevels) {
    const made = create('prioritylevelconfigurations', one)
    t.same(made.spec, one.spec, `${one.metadata.name}`)
  }
  for (const one of standardFlowSchemas) t.same(create('flowschemas', one).spec, one.spec, `${one.metadata.name}`)
  const [exempt] = standardFlowSchemas
  if (exempt === undefined) return t.fail('no schema')
  t.match(
    causes(() => update('flowschemas', exempt, { ...exempt, spec: { ...exempt.spec, rules: [] } })),
    [/^spec: Invalid value: .*: spec of 'exempt' must equal the fixed value$/],
  )
})
