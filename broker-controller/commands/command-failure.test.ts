import { test } from 'tap'
import { failureText } from './command-failure.ts'

test('who may not read the files is told who may, and others are told what failed', async (t) => {
  const running = new AbortController().signal
  const denied = Object.assign(new Error('EACCES: permission denied, open ca.crt'), { code: 'EACCES' })
  const remedy = 'Run it as root (sudo), or as the user whose files these are.\n'
  t.equal(failureText(denied, running), `${denied.message}\n${remedy}`)
  const told = new Error('Cannot read ca.crt', { cause: denied })
  t.equal(failureText(told, running), `Cannot read ca.crt: ${denied.message}\n${remedy}`)
  t.equal(failureText(new Error('the disk is full'), running), 'the disk is full\n')
  t.equal(failureText(denied, AbortSignal.abort()), 'Stopped\n')
})
