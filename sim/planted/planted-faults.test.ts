import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { planted } from './plant.ts'
import { plantedFaults } from './planted-faults.ts'

test('each planted fault is in its file once', async (t) => {
  for (const [name, fault] of Object.entries(plantedFaults)) {
    const source = readFileSync(new URL(`../../${fault.file}`, import.meta.url), 'utf8')
    t.not(planted(source, fault), source, name)
  }
})

test('a fault whose text is not there is not planted', async (t) => {
  const fault = { what: '', file: 'a.js', text: 'one', replacement: 'two', world: 'workloads' } as const
  t.equal(planted('just one', fault), 'just two')
  t.throws(() => planted('nothing', fault), { message: 'Not once in a.js: one' })
  t.throws(() => planted('one one', fault), { message: 'Not once in a.js: one' })
})
