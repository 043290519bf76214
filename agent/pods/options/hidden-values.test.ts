import { test } from 'tap'
import { withoutValues } from './hidden-values.ts'

test('values of variables are not repeated from a message of the engine', async (t) => {
  const env = [
    { name: 'PASS', value: 's3cret"word' },
    { name: 'PART', value: 's3cret' },
    { name: 'MODE', value: 'on' },
  ]
  const message = 'invalid environment variable "PASS=s3cret\\"word": PASS=s3cret"word, then s3cret is on'
  t.equal(
    withoutValues(message, env),
    'invalid environment variable "PASS=[value of PASS]": PASS=[value of PASS], then [value of PART] is on',
  )
  t.equal(withoutValues('no such image', env), 'no such image')
})

test('a name with characters that stand for the match in a replacement does not show its value', async (t) => {
  const env = [{ name: "A$&B$'", value: 's3cret' }]
  t.equal(withoutValues('invalid: s3cret', env), "invalid: [value of A$&B$']")
})
