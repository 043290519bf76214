import { test } from 'tap'
import { argumentProblem } from './argument-size.ts'

const none = { env: [], command: undefined, args: undefined }

test('arguments that the kernel rejects are reported with their field', async (t) => {
  const fits = { name: 'BIG', value: 'x'.repeat(131_072 - 5) }
  t.equal(argumentProblem({ ...none, env: [fits] }), undefined)
  t.match(
    argumentProblem({ ...none, env: [{ ...fits, value: `${fits.value}x` }] }),
    /^env BIG has 131073 bytes, the kernel takes at most 131072 .*mount it as a volume$/,
  )
  t.match(
    argumentProblem({ ...none, command: ['sh'], args: ['-c', 'x'.repeat(140_000)] }),
    /^args\[1\] has 140001 bytes/,
  )
  const many = Array.from({ length: 20 }, (_, index) => ({ name: `V${index}`, value: 'x'.repeat(120_000) }))
  t.match(argumentProblem({ ...none, env: many }), /^env, command and args have \d+ bytes together/)
})
