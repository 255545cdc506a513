// SPDX-License-Identifier: MIT
// redlock.js ADDRESS[,ADDRESS...] MILLISECONDS pairs|handoffs NAME[+NAME...] THREADS - node-redlock on ioredis; see ../peers.py
//
// With its default delay between two attempts, but without a limit to their number. "Threads" are concurrent loops.
'use strict';
const Redis = require('ioredis');
const { default: Redlock } = require('redlock');
const readline = require('readline');

const [addresses, ms, what, name, threads] = process.argv.slice(2);
const LEASE_MS = 30000, WARM = 20;

function connect(address) {
    if (address.startsWith('/'))
        return new Redis(address);
    const at = address.lastIndexOf(':');
    return new Redis(Number(address.slice(at + 1)), address.slice(0, at));
}

async function pair(redlock, resource) {
    const lock = await redlock.acquire(resource.split('+'), LEASE_MS);
    await lock.release();
}

async function main() {
    const clients = addresses.split(',').map(connect), redlock = new Redlock(clients, { retryCount: -1 });
    const names = Array.from({ length: Number(threads) }, (_, i) => (what === 'handoffs' ? name : `${name}-${i}`));
    await Promise.all(names.map(async (resource) => {
        for (let i = 0; i < WARM; i++)
            await pair(redlock, resource);
    }));
    const lines = readline.createInterface({ input: process.stdin });
    console.log('ready');
    await new Promise((resolve) => lines.once('line', resolve));
    let pairs = 0, over = false;
    const loops = names.map(async (resource) => {
        for (; !over; pairs++)
            await pair(redlock, resource);
    });
    await new Promise((resolve) => setTimeout(resolve, Number(ms)));
    console.log(pairs);
    over = true;
    await Promise.all(loops);
    lines.close();
    clients.forEach((client) => client.disconnect());
}

main();
