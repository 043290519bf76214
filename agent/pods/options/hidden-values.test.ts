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

test('what is shown in place of a value is not searched for other values', async (t) => {
  const env = [
    { name: 'PASS', value: 's3cret' },
    { name: 'WORD', value: 'value' },
    { name: 'NAME', value: 'PASS' },
  ]
  t.equal(withoutValues('s3cret', env), '[value of PASS]', 'which would show that a value is "value" or "PASS"')
  t.equal(withoutValues('PASS=s3cret', env), 'PASS=[value of PASS]')
})

test('a value of less than four characters is hidden behind its name, and not where it is by chance', async (t) => {
  const env = [
    { name: 'PIN', value: '123' },
    { name: 'EMPTY', value: '' },
  ]
  const message = 'invalid variable PIN=123, "PIN=123": EMPTY= at line 123'
  t.equal(withoutValues(message, env), 'invalid variable PIN=[value of PIN], "PIN=[value of PIN]": EMPTY= at line 123')
})

test('values with control characters and letters of all kinds are hidden as Go quotes them', async (t) => {
  const value = 'pass\x01\x07\v\x7f\n"\\é \u00ad\u{e0001}'
  const quoted = String.raw`pass\x01\a\v\x7f\n\"\\é \u00ad\U000e0001`
  const env = [{ name: 'KEY', value }]
  t.equal(withoutValues(`invalid "KEY=${quoted}"`, env), 'invalid "KEY=[value of KEY]"')
  t.equal(withoutValues(`invalid ${JSON.stringify(value)}`, env), 'invalid "[value of KEY]"')
})

test('values have no meaning as expressions', async (t) => {
  const env = [{ name: 'A+', value: '.*(a|b)+[^c]$' }]
  t.equal(withoutValues('x .*(a|b)+[^c]$ y', env), 'x [value of A+] y')
  t.equal(withoutValues('xaby', env), 'xaby')
})
