import { test } from 'tap'
import { codeOf, isDenied, isMissing, messageOf } from './errors.ts'

const withCode = (code: unknown, cause?: unknown) => Object.assign(new Error('failed', { cause }), { code })

test('codes of thrown values', async (t) => {
  t.equal(codeOf(withCode('ENOENT')), 'ENOENT')
  t.same(
    [codeOf(withCode(5)), codeOf(new Error('x')), codeOf('ENOENT'), codeOf(null), codeOf(undefined)],
    ['', '', '', '', ''],
  )
  t.same(
    ['ENOENT', 'ENOTDIR', 'EACCES', ''].map((code) => isMissing(withCode(code))),
    [true, true, false, false],
  )
})

test('a denial is found among causes', async (t) => {
  t.equal(isDenied(withCode('EPERM')), true)
  t.equal(isDenied(new Error('Cannot read', { cause: withCode('EACCES') })), true)
  t.equal(isDenied(new Error('Cannot read', { cause: withCode('ENOENT') })), false)
  t.equal(isDenied('EACCES'), false)
})

test('the message of any thrown value', async (t) => {
  t.equal(messageOf(new Error('broken', { cause: new Error('inner') })), 'broken')
  t.equal(messageOf('a text'), 'a text')
  t.equal(messageOf(undefined), 'undefined')
})

test('a cycle of causes ends the search for a denial', async (t) => {
  const error = new Error('refers to itself')
  error.cause = error
  t.equal(isDenied(error), false)
})
