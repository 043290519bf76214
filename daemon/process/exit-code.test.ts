import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { exitCode } from './exit-code.ts'

test('systemd does not start a program again whose command line or configuration is wrong', async (t) => {
  const units = new URL('../../../systemd/', import.meta.url)
  const names = readdirSync(units).filter((name) => name.endsWith('.service'))
  t.ok(names.length >= 3)
  for (const name of names) {
    const unit = readFileSync(new URL(name, units), 'utf8')
    if (!/^Restart=(?!no$)/m.test(unit)) continue
    const [, statuses = ''] = /^RestartPreventExitStatus=(.*)$/m.exec(unit) ?? []
    t.strictSame(statuses.split(' ').map(Number), [exitCode.usage, exitCode.configuration], name)
  }
})
