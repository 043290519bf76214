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
  t.match(argumentProblem({ ...none, command: ['x'.repeat(140_000)] }), /^command\[0\] has 140001 bytes/)
  t.match(argumentProblem({ ...none, env: many }), /^env, command and args have \d+ bytes together/)
})

test('all words together have 2 MiB less 64 KiB, each with its zero and a pointer', async (t) => {
  const words = (last: number) => [...Array(20).fill('x'.repeat(100_000 - 9)), 'x'.repeat(last)]
  const left = 2 ** 21 - 2 ** 16 - 20 * 100_000 - 9
  t.equal(argumentProblem({ ...none, args: words(left) }), undefined)
  t.match(
    argumentProblem({ ...none, args: words(left + 1) }),
    /^env, command and args have 2031617 bytes together, the kernel takes at most 2031616; put large data in/,
  )
})

test('a word with a NUL character is reported with its field: the program would get the part before it', async (t) => {
  const problem = 'has a NUL character, with which the kernel ends a variable or argument'
  t.equal(argumentProblem({ ...none, command: ['sh', 'a\0b'] }), `command[1] ${problem}`)
  t.equal(argumentProblem({ ...none, args: ['\0'] }), `args[0] ${problem}`)
  t.equal(argumentProblem({ ...none, env: [{ name: 'A', value: 'b\0' }] }), `env A ${problem}`)
})
