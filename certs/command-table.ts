/** Every command of bramble-certs with its options: read, checked, explained and completed from these rows. */
import type { Command } from '../daemon/process/command.ts'

const authority = { value: 'FOLDER', help: 'folder with ca.crt and ca.key of the authority' } as const
const out = { value: 'FOLDER', help: 'folder to write NAME.crt, NAME.key (mode 0600) and ca.crt to' } as const

const show = {
  name: 'bramble-certs show',
  about: 'show subject, issuer, names, dates, days left and hash of each certificate in a file or folder',
  forms: { 'FILE|FOLDER': '' },
  options: {},
} as const satisfies Command

const hash = {
  name: 'bramble-certs hash',
  about: 'print the hash of an authority, for --ca-hash of a joining machine',
  forms: { 'FILE|FOLDER': '' },
  options: {},
} as const satisfies Command

const authorityRow = {
  name: 'bramble-certs authority',
  about: 'show the authority in a folder, or create one there',
  forms: { FOLDER: '' },
  options: {},
} as const satisfies Command

const issue = {
  name: 'bramble-certs issue',
  about: 'issue a certificate and its key by hand',
  forms: {
    'server NAME...': 'for a server with these names and addresses',
    admin: 'for an administrator; with --server also a kubeconfig',
    'node NAME': 'for a node',
  },
  options: {
    authority,
    out,
    server: { value: 'URL', help: 'address of the API, for the kubeconfig of an administrator' },
    days: {
      value: 'N',
      help: 'lifetime in days',
      range: [1, 99_999],
      defaultText: 'a year; for a server five',
    },
    force: { help: 'replace existing files' },
  },
} as const satisfies Command

const completion = {
  name: 'bramble-certs completion',
  about: 'print the completion script of a shell',
  forms: { bash: 'for bash: source it, or install it in /usr/share/bash-completion/completions' },
  options: {},
} as const satisfies Command

export const certsCommands = { show, hash, authority: authorityRow, issue, completion } as const

export const certsProgram = {
  name: 'bramble-certs',
  about: 'show and issue the certificates of a fleet',
  usage: ['COMMAND [options]'],
  forms: { '': '' },
  options: { version: { help: 'print the version' } },
  commands: certsCommands,
  end: "'bramble-certs COMMAND --help' describes a command.",
} as const satisfies Command
