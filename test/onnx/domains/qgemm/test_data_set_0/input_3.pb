BbJý<Jù
ÝOU€IÿD™X“%Hù@B÷ÿY4J