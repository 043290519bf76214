import { test } from 'tap'
import { memoryCgroup } from './memory-cgroup.ts'

test('a machine that limits memory is well, and one without control groups is unknown', async (t) => {
  t.equal(memoryCgroup(undefined), undefined)
  t.match(memoryCgroup({ isEnabled: true, commandLine: '', file: undefined }), {
    ...{ status: 'False', reason: 'MemoryCgroupEnabled' },
  })
})

test('a machine that does not is changed at its command line', async (t) => {
  const words = 'Add "cgroup_enable=memory cgroup_memory=1" to'
  const cases: readonly (readonly [string, string | undefined, string])[] = [
    ['', '/boot/firmware/cmdline.txt', `${words} the one line of /boot/firmware/cmdline.txt`],
    ['cgroup_disable=memory', '/boot/cmdline.txt', `${words} the one line of /boot/cmdline.txt`],
    ['quiet', undefined, `${words} the kernel's command line`],
    ['quiet', '/etc/default/grub', `${words} the kernel's command line in /etc/default/grub`],
    ['quiet cgroup_disable=memory ro', undefined, 'Remove "cgroup_disable=memory" from the kernel\'s command line'],
    [
      'cgroup_disable=cpu,memory,io',
      '/etc/default/grub',
      'Remove "cgroup_disable=cpu,memory,io" from the kernel\'s command line in /etc/default/grub',
    ],
    ['cgroup_disable=memory_recursive', undefined, `${words} the kernel's command line`],
  ]
  for (const [commandLine, file, remedy] of cases)
    t.match(memoryCgroup({ isEnabled: false, commandLine, file }), {
      ...{ status: 'True', reason: 'MemoryCgroupOff', remedy: `${remedy}, then restart the machine` },
    })
})
