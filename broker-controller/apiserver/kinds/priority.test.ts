import { test } from 'tap'
import type { PriorityClass } from '../../../api/priority-class.ts'
import { systemPriorityClasses } from '../../../api/priority-class.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { create, fields, update } from '../../testing/admitting.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { withPriority } from './priority.ts'

const aClass = (name: string, value: number, more: Partial<PriorityClass> = {}): PriorityClass => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name },
  value,
  preemptionPolicy: 'PreemptLowerPriority',
  ...more,
})

test('a pod has the priority of its class, of the default class, or none', async (t) => {
  const classes = [aClass('high', 1000), aClass('polite', 500, { preemptionPolicy: 'Never' })]
  const defaults = [aClass('usual', 10, { globalDefault: true }), aClass('modest', 5, { globalDefault: true })]
  const spec = (over: Parameters<typeof aPod>[0], all = classes) => {
    const admitted = withPriority(aPod(over), all)
    return admitted.ok ? admitted.object.spec : admitted.because
  }
  t.match(spec({ spec: { priorityClassName: 'high' } }), { priority: 1000, preemptionPolicy: 'PreemptLowerPriority' })
  t.match(spec({ spec: { priorityClassName: 'polite' } }), { priority: 500, preemptionPolicy: 'Never' })
  t.match(spec({}), { priority: 0, preemptionPolicy: 'PreemptLowerPriority', priorityClassName: undefined })
  t.match(
    spec({}, [...classes, ...defaults]),
    { priority: 5, priorityClassName: 'modest' },
    'the least of the defaults',
  )
  t.equal(spec({ spec: { priorityClassName: 'none' } }), 'no PriorityClass with name none was found')
  t.match(spec({ priority: 1000, spec: { priorityClassName: 'high' } }), { priority: 1000 }, 'it may repeat it')
  t.equal(
    spec({ priority: 2000, spec: { priorityClassName: 'high' } }),
    'the integer value of priority (2000) must not be provided in pod spec; ' +
      'priority admission controller computed 1000 from the given PriorityClass name',
  )
  t.match(spec({ spec: { preemptionPolicy: 'Never' } }), /computed PreemptLowerPriority/)
})

test('a class without a value has 0, and shows it', async (t) => {
  const { value: _, ...unvalued } = aClass('plain', 0)
  t.equal((create('priorityclasses', unvalued) as PriorityClass).value, 0)
  const { ask } = await anApi(t)
  const path = '/apis/scheduling.k8s.io/v1/priorityclasses'
  t.match(await ask('POST', path, { body: unvalued }), { code: 201, body: { value: 0 } })
  t.match(withPriority(aPod({ spec: { priorityClassName: 'plain' } }), [unvalued]), {
    object: { spec: { priority: 0 } },
  })
})

test('one class is the default; user classes stay below the system ones; a value stays', async (t) => {
  const usual = aClass('usual', 10, { globalDefault: true })
  const { ask } = await anApi(t)
  const path = '/apis/scheduling.k8s.io/v1/priorityclasses'
  t.match(await ask('POST', path, { body: usual }), { code: 201 })
  t.match(await ask('POST', path, { body: { ...usual, metadata: { name: 'other' } } }), {
    code: 403,
    body: { message: /PriorityClass usual is already marked as default. Only one default can exist$/ },
  })
  t.match(await ask('PUT', `${path}/usual`, { body: usual }), { code: 200 }, 'it may stay so')
  const fieldsOf = (one: PriorityClass) => fields(() => create('priorityclasses', one))
  t.same(fieldsOf(aClass('top', 1_000_000_000)), [])
  t.same(fieldsOf(aClass('top', 1_000_000_001)), ['value'])
  t.same(fieldsOf(aClass('system-mine', 1)), ['metadata.name'])
  t.same(fieldsOf(aClass('top', 1, { preemptionPolicy: 'Maybe' })), ['preemptionPolicy'])
  t.same(systemPriorityClasses.flatMap(fieldsOf), [])
  t.same(
    fields(() => update('priorityclasses', usual, { ...usual, value: 11, description: 'ours' })),
    ['value'],
  )
})
