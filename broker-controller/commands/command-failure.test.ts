import { test } from 'tap'
import { ApiUnreachable } from '../../daemon/api-client.ts'
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

test('a controller that does not answer has a remedy, and one with another certificate has not', async (t) => {
  const running = new AbortController().signal
  const failed = (code: string) =>
    failureText(new ApiUnreachable('Cannot GET https://127.0.0.1:6443/a', code, { cause: new Error(code) }), running)
  const remedy =
    "Check that the controller runs there ('systemctl status bramble-controller'), or name another one by --kubeconfig.\n"
  for (const code of ['ECONNREFUSED', 'ETIMEDOUT', 'ENOTFOUND']) {
    t.equal(failed(code), `Cannot GET https://127.0.0.1:6443/a: ${code}\n${remedy}`)
  }
  t.equal(failed('CERT_HAS_EXPIRED'), 'Cannot GET https://127.0.0.1:6443/a: CERT_HAS_EXPIRED\n')
})
