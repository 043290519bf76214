import { test } from 'tap'
import { fleetEntities, fleetUpdateKeys, machineEntities, updateKeys } from './machine-entities.ts'

/** In a template `value_json.update` is the method of Python's dictionary, whatever the state has by that name. */
const methods = 'clear copy fromkeys get items keys pop popitem setdefault update values'.split(' ')

test('no key of a state is hidden by a method of a dictionary in templates', async (t) => {
  const entities = [...Object.keys(machineEntities), ...Object.keys(fleetEntities)]
  const keys = [...entities, ...updateKeys, ...fleetUpdateKeys]
  t.same(
    keys.filter((key) => methods.includes(key) || !/^[a-z_]+$/.test(key)),
    [],
  )
})
