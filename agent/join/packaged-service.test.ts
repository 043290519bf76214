import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { agentDefaults } from '../commands/command-table.ts'
import { isStartedBySystemd } from './packaged-service.ts'

test('systemd starts an agent of the package, with its default data directory', async (t) => {
  const root = testFolder(t)
  const { dataDir } = agentDefaults
  t.equal(isStartedBySystemd(root, dataDir), false, 'nothing is installed')

  const wants = join(root, 'etc/systemd/system/multi-user.target.wants')
  await mkdir(wants, { recursive: true })
  await writeFile(join(wants, 'bramble-agent.path'), '')
  t.equal(isStartedBySystemd(root, dataDir), false, 'systemd does not run')

  await mkdir(join(root, 'run/systemd/system'), { recursive: true })
  t.equal(isStartedBySystemd(root, dataDir), true)
  t.equal(isStartedBySystemd(root, '/home/pi/agent'), false, 'the unit watches another folder')
})
