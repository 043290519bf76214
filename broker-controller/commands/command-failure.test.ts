import { test } from 'tap'
import { failureText } from './command-failure.ts'

test('a denied access to files names who has it; other failures name what failed', async (t) => {
  const running = new AbortController().signal
  const denied = Object.assign(new Error('EACCES: permission denied, open ca.crt'), { code: 'EACCES' })
  const remedy = 'Run it as root (sudo), or as the owner of the files.\n'
  t.equal(failureText(denied, running), `${denied.message}\n${remedy}`)
  const failure = new Error('Cannot read ca.crt', { cause: denied })
  t.equal(failureText(failure, running), `Cannot read ca.crt: ${denied.message}\n${remedy}`)
  t.equal(failureText(new Error('the disk is full'), running), 'the disk is full\n')
  t.equal(failureText(denied, AbortSignal.abort()), 'Stopped\n')
})
